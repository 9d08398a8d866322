/* The example of c.h as a program: runs y = x w and checks what it returns. */
#include <stdio.h>

#include "tensorgrad/c.h"
#include "tensorgrad/c_text.h"

static int fail(const char* call) {
  fprintf(stderr, "%s: %s (%s)\n", call, tg_error(), tg_error_kind());
  return 1;
}

int main(void) {
  const float w[2] = {1.0f, 10.0f};

  tg_model* model = tg_model_new();
  tg_model_param(model, "w", "{\"shape\": [2, 1]}", NULL, 0);
  tg_graph* graph = tg_begin_forward(
      model, "{\"inputs\": [{\"name\": \"x\", \"shape\": [8, 2]}], \"device\": \"cpu\"}");
  int y = tg_op(graph, "matmul", "{\"a\": {\"tensor\": 0}, \"b\": {\"param\": \"w\"}}",
                __FILE__, __LINE__);
  tg_output(graph, "y", y);
  tg_future* compiling = tg_compile(graph);
  while (tg_ready(compiling) == 0) tg_poll();
  tg_program* program = tg_future_program(compiling);
  if (!program) return fail("tg_compile");

  tg_arrays* parameters = tg_arrays_new();
  float* values = tg_arrays_add(parameters, "w", "f32[2,1]");
  if (!values) return fail("tg_arrays_add");
  values[0] = w[0], values[1] = w[1];
  if (!tg_upload(program, parameters, 0)) return fail("tg_upload");

  tg_arrays* feed = tg_arrays_new();
  float* x = tg_arrays_add(feed, "x", "f32[8,2]");
  for (int i = 0; i < 16; ++i) x[i] = (float)i;
  tg_future* running = tg_run(program, feed, 0);
  while (tg_ready(running) == 0) tg_poll();
  if (tg_ready(running) < 0) return fail("tg_run");

  tg_arrays* results = tg_future_arrays(running);
  const float* got = tg_arrays_data(results, tg_arrays_find(results, "y"));
  for (int i = 0; i < 8; ++i)
    if (got[i] != (float)(2 * i) + 10.0f * (float)(2 * i + 1)) {
      fprintf(stderr, "y[%d] is %g\n", i, (double)got[i]);
      return 1;
    }

  tg_future_free(running);
  tg_arrays_free(feed);
  tg_arrays_free(parameters);
  tg_program_free(program);
  tg_future_free(compiling);
  tg_model_free(model);
  return 0;
}
