/* The C interface: what other languages build on. The npm package is made of it.
 *
 * The caller drives. It begins a graph, calls ops by name, and ends the graph; no callback runs
 * while a function of the library is open. Calls never block: what takes time returns a tg_future,
 * and tg_poll() makes progress. Everything is used from one thread.
 *
 * A function that fails returns NULL if it returns a pointer, -1 if it returns an int, a long or an
 * int64_t, and 0 if it returns a size_t or only whether it succeeded. tg_error() then returns the
 * text. A failed call changed nothing. A null handle and one that was freed are errors, except for
 * the functions that free it, which ignore them.
 *
 * Options and arguments are JSON objects with the names of the C++ interface: tg_registry() lists
 * the ops, the layers and their parameters. A tensor in an argument is {"tensor": number}, a
 * parameter of the model {"param": "name"}. Numbers may be "Infinity", "-Infinity" or "NaN".
 * Types are texts such as "f32[32,784]". Texts are UTF-8 and end with a zero. A text or pointer
 * that is returned is valid until the next call with the same object, or, without one, until the
 * next call of the same function. docs/c.md explains the interface on one page.
 *
 *   tg_model* model = tg_model_new();
 *   tg_model_param(model, "w", "{\"shape\": [2, 1]}", NULL, 0);
 *   tg_graph* graph = tg_begin_forward(
 *       model, "{\"inputs\": [{\"name\": \"x\", \"shape\": [8, 2]}], \"device\": \"cpu\"}");
 *   int y = tg_op(graph, "matmul", "{\"a\": {\"tensor\": 0}, \"b\": {\"param\": \"w\"}}",
 *                 __FILE__, __LINE__);
 *   tg_output(graph, "y", y);
 *   tg_future* compiling = tg_compile(graph);
 *   while (tg_ready(compiling) == 0) tg_poll();
 *   tg_program* program = tg_future_program(compiling);
 */
#ifndef TENSORGRAD_C_H
#define TENSORGRAD_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tg_arrays tg_arrays;         /* host arrays by name */
typedef struct tg_bytes tg_bytes;           /* a file in memory */
typedef struct tg_checkpoint tg_checkpoint; /* what training needs to go on */
typedef struct tg_model tg_model;           /* parameters and layers */
typedef struct tg_graph tg_graph;           /* a program whose ops are being called */
typedef struct tg_program tg_program;       /* a compiled program */
typedef struct tg_future tg_future;         /* a value that arrives later */

/* ---- errors and the library */

/* The text of the last call that failed. */
const char* tg_error(void);
/* Its kind: "user", "non_finite", "device", "out_of_memory" or "internal". */
const char* tg_error_kind(void);
const char* tg_version(void);
/* All ops and layers, the stages of the compiler and the passes that can be left out, as JSON:
 * {"ops", "layers", "stages", "passes"}, each of them a list. An op has {"name", "family",
 * "sentence", "parameters", "several"}: several results, or one. A layer has {"name", "sentence",
 * "parameters", "inputs"}. A parameter has {"name", "kind"}, "words" if it is one of them, and
 * "default" if it may be left out. */
const char* tg_registry(void);
/* The devices, as JSON: [{"name", "description", "available", "auto", "problem", "software",
 * "backend", "simd", "max_buffer_bytes", "max_binding_bytes"}]. "auto": this is what the device
 * "auto" means. */
const char* tg_devices(void);
/* Makes progress. Returns 1 while something is under way, 0 when nothing is, -1 on failure. */
int tg_poll(void);

/* ---- arrays by name */

tg_arrays* tg_arrays_new(void);
void tg_arrays_free(tg_arrays* arrays);
/* Adds an array of zeros and returns its elements, to be filled: float, or int32_t for i32 and
 * bool. */
void* tg_arrays_add(tg_arrays* arrays, const char* name, const char* type);
int tg_arrays_count(const tg_arrays* arrays);
/* Arrays are sorted by name. */
int tg_arrays_find(const tg_arrays* arrays, const char* name);
const char* tg_arrays_name(const tg_arrays* arrays, int index);
const char* tg_arrays_type(tg_arrays* arrays, int index);
void* tg_arrays_data(tg_arrays* arrays, int index);
/* Reads a safetensors file; `name` is its name in errors. */
tg_arrays* tg_arrays_load(const void* bytes, size_t size, const char* name);
/* The texts of the file that was read, as a JSON object. */
const char* tg_arrays_metadata(tg_arrays* arrays);
/* Makes a safetensors file. `metadata` is a JSON object of texts, or NULL. */
tg_bytes* tg_arrays_save(const tg_arrays* arrays, const char* metadata);

const void* tg_bytes_data(const tg_bytes* bytes);
size_t tg_bytes_size(const tg_bytes* bytes);
void tg_bytes_free(tg_bytes* bytes);

/* ---- checkpoints */

/* `optimizer` may be NULL. `info` is JSON: {"step", "seed", "position", "config", "tokenizer",
 * "more"}, all of them optional. Copies the arrays. */
tg_checkpoint* tg_checkpoint_new(const tg_arrays* parameters, const tg_arrays* optimizer,
                                 const char* info);
tg_checkpoint* tg_checkpoint_load(const void* bytes, size_t size, const char* name);
tg_bytes* tg_checkpoint_save(const tg_checkpoint* checkpoint);
/* The arrays belong to the checkpoint. */
tg_arrays* tg_checkpoint_parameters(tg_checkpoint* checkpoint);
tg_arrays* tg_checkpoint_optimizer(tg_checkpoint* checkpoint);
const char* tg_checkpoint_info(tg_checkpoint* checkpoint);
void tg_checkpoint_free(tg_checkpoint* checkpoint);

/* ---- models. A graph copies the model when it begins: the model may be changed, used again or
 * freed. Programs that share parameters are attached to each other, see tg_begin_attached(). */

tg_model* tg_model_new(void);
void tg_model_free(tg_model* model);
/* Adds a parameter, or changes the one of that name. `options`: {"shape", "init", "decay",
 * "frozen"}; the shape only for a new one. "init" is a word or an object: "zeros", "ones",
 * {"kind": "normal", "deviation": 0.02}, {"kind": "kaiming_uniform", "gain": 1}, ... The values of
 * {"kind": "literal"} are `values`. */
int tg_model_param(tg_model* model, const char* name, const char* options, const float* values,
                   size_t count);
/* Adds a layer of the registry: its parameters are named `name`.W and so on. Returns its number. */
int tg_model_layer(tg_model* model, const char* name, const char* layer, const char* arguments,
                   const char* file, int line);
/* `name` is another name of the parameter `of`. */
int tg_model_share(tg_model* model, const char* name, const char* of);
/* The parameters in order, as JSON: [{"name", "shape", "decay", "frozen"}]. "same_as" is there for
 * another name of a parameter. */
const char* tg_model_params(tg_model* model);

/* ---- graphs */

/* `options` has the fields of TrainingOptions, ForwardOptions or AttachOptions, with "inputs":
 * [{"name", "shape", "dtype"}]. The inputs are the first tensors of the graph, in their order. */
tg_graph* tg_begin_training(tg_model* model, const char* options);
tg_graph* tg_begin_forward(tg_model* model, const char* options);
/* A forward program over the parameters of this one. Shares them without copies. */
tg_graph* tg_begin_attached(tg_program* program, const char* options);
/* Calls an op. `arguments` holds them by name. `file` and `line` are the caller's, for errors.
 * Returns the number of the first result. Several results are numbered one after the other, up to
 * tg_tensors(). */
int tg_op(tg_graph* graph, const char* op, const char* arguments, const char* file, int line);
/* Calls a layer of the model, by the number that tg_model_layer() returned. */
int tg_layer(tg_graph* graph, int layer, const char* arguments, const char* file, int line);
/* The number of tensors so far. */
int tg_tensors(const tg_graph* graph);
const char* tg_tensor_type(tg_graph* graph, int tensor);
/* Names a result of the program. The loss of a training program is called "loss". */
int tg_output(tg_graph* graph, const char* name, int tensor);
/* The graph so far, as text. */
const char* tg_graph_text(tg_graph* graph);
/* Ends the graph and compiles it. The value is a program. Frees the graph, also on failure. */
tg_future* tg_compile(tg_graph* graph);
void tg_graph_free(tg_graph* graph);

/* ---- what arrives later */

/* 0: not yet. 1: the value is there. -1: it failed, and tg_error() says why. */
int tg_ready(tg_future* future);
/* The progress of compilation: {"work", "done", "total"}; "" if there is none to report. */
const char* tg_future_progress(tg_future* future);
/* The value, which belongs to the future. A value of another kind is an error. */
tg_arrays* tg_future_arrays(tg_future* future);
tg_arrays* tg_future_captures(tg_future* future);
const char* tg_future_text(tg_future* future);
/* The value, which belongs to the caller from now on. */
tg_program* tg_future_program(tg_future* future);
tg_checkpoint* tg_future_checkpoint(tg_future* future);
void tg_future_free(tg_future* future); /* the work goes on */

/* ---- programs */

void tg_program_free(tg_program* program);
/* As JSON: {"trains", "device", "threads", "parameters", "inputs", "outputs", "captures",
 * "kernels", "counts", "compile_ms", "stage_ms"}. */
const char* tg_program_info(tg_program* program);
/* What a stage of the compiler made: tg show --stage. */
const char* tg_program_show(tg_program* program, const char* stage);
/* The kernels of a run in order, as JSON: [{"kind", "phase", "stage", "ops", "where", "operations",
 * "bytes_read", "bytes_written", "writes"}]. "writes" are the tensors that a kernel writes:
 * [{"type", "space", "offset", "bytes", "last_use", "in_place"}]. "last_use" is the index of the
 * last kernel that reads the tensor, or the number of kernels if it outlives the run. */
const char* tg_program_plan(tg_program* program);
/* Runs the program until `steps` runs were measured, each kernel alone. The text of the value is
 * JSON: [{"kernel", "name", "microseconds", "mean_microseconds"}], the shortest and the mean time
 * of each dispatch. Copies the feed. The runs of a training program are steps, which change its
 * parameters. */
tg_future* tg_profile(tg_program* program, const tg_arrays* feed, int steps);
/* What tg_run() reads. If it reads nothing, its future is ready at once and has no value, and a
 * failure is reported by the next run that reads something. */
enum { TG_READ_NOTHING = -1, TG_READ_OUTPUTS = 0, TG_READ_CAPTURES = 1 /* and outputs */ };
/* Runs the program: a training step, or a forward pass. Copies the feed; NULL feeds nothing. The
 * value is arrays: the outputs and, if they are read, the captures. The text of a step is JSON:
 * {"step", "lr", "finite"}; steps count from 0, as in errors. With clip_grad_norm, a step that
 * updates also has "grad_norm", the norm of the gradients before clipping; null if it is not
 * finite. */
tg_future* tg_run(tg_program* program, const tg_arrays* feed, int read);
/* Fixes inputs for all runs that do not feed them. */
int tg_set_inputs(tg_program* program, const tg_arrays* values);
/* The value is arrays. `what`: "parameters", "gradients" or "optimizer". */
tg_future* tg_download(tg_program* program, const char* what);
/* `partial`: any subset of the parameters. */
int tg_upload(tg_program* program, const tg_arrays* parameters, int partial);
/* Sets parameters and optimizer state of a training program; has no value. */
tg_future* tg_restore(tg_program* program, const tg_arrays* parameters, const tg_arrays* optimizer);
/* Clears the optimizer state and sets the step to 0. Draws the initial weights again, from {"seed"}
 * if `options` has one; with {"optimizer": true} it keeps the weights. */
int tg_reset(tg_program* program, const char* options);
/* Sets all parameters, clears the optimizer state and sets the step to 0. */
int tg_restart(tg_program* program, const tg_arrays* parameters);
/* The learning rate from the next step on: a number, or a schedule as in the options. A caller
 * whose rate is a function sets it before each step, for update tg_updates() + 1. */
int tg_set_lr(tg_program* program, const char* lr);
/* The steps of a training program enqueued so far, and the updates that they make. */
int64_t tg_steps(tg_program* program);
int64_t tg_updates(tg_program* program);

#ifdef __cplusplus
}
#endif

#endif
