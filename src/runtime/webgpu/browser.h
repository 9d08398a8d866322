// What browser.js and library_browser.cpp call of each other. Objects of the page are numbers; 0 is
// none. A `request` is answered by webgpu_arrived(). Texts that JavaScript passes are allocated
// with malloc, and their receiver frees them.
#pragma once

#include <cstdint>
#include <string>

namespace tensorgrad::webgpu {

// What the page says about its WebGPU, by a key of webgpu_info_text().
std::string page_text(const char* key);

}  // namespace tensorgrad::webgpu

extern "C" {

// --- browser.js ---------------------------------------------------------------------------------

int webgpu_available();                   // whether the page passed an open device
char* webgpu_info_text(const char* key);  // "name", "vendor", ..., or "message": why there is none
double webgpu_info_number(const char* key);
double webgpu_limit(int opened, const char* key);  // of the adapter, or of the open device
int webgpu_feature(int opened, const char* name);

void webgpu_push_error_scope(int filter);
void webgpu_pop_error_scope(int request);  // the value is an ErrorType
int webgpu_create_buffer(const char* label, int label_size, int usage, double size,
                         int without_memory);
int webgpu_create_shader_module(const char* label, int label_size, const char* code, int code_size);
void webgpu_compilation_info(int request, int module);  // calls webgpu_message() first
int webgpu_create_bind_group_layout(const std::uint32_t* types, int count);
int webgpu_create_pipeline_layout(int group_layout);
void webgpu_pipeline_constant(const char* key, int key_size, double value);  // of the next pipeline
void webgpu_create_pipeline(int request, const char* label, int label_size, int layout, int module,
                            const char* entry, int entry_size);  // the value is the pipeline
// Three numbers per entry: buffer, offset, size.
int webgpu_create_bind_group(int layout, const double* entries, int count);
int webgpu_create_query_set(int count);
void webgpu_release(int object);

void webgpu_submit(int commands);  // 0: only what the queue holds
void webgpu_write(int buffer, double offset, const void* bytes, double size);
void webgpu_work_done(int request);
void webgpu_map(int request, int buffer, double size);
int webgpu_copy_mapped(int buffer, void* to, double size);  // 0: there is no mapped range
void webgpu_unmap(int buffer);

int webgpu_create_encoder();
int webgpu_begin_pass(int encoder, int query_set, int begin, int end);
void webgpu_copy(int encoder, int from, double from_offset, int to, double to_offset, double size);
void webgpu_clear(int encoder, int buffer, double offset, double size);
void webgpu_resolve(int encoder, int query_set, int first, int count, int to, double offset);
int webgpu_finish(int encoder);
void webgpu_set_pipeline(int pass, int pipeline);
void webgpu_set_bind_group(int pass, int group);
void webgpu_dispatch(int pass, int x, int y, int z);
void webgpu_end_pass(int pass);

// --- library_browser.cpp, called from events of the page ----------------------------------------

// Returns 0 if nobody waits for the answer any more.
int webgpu_arrived(int request, int ok, int value, char* text);
void webgpu_message(int request, int type, int line, int column, char* text);
void webgpu_reported(int type, char* text);  // an error that no scope caught
void webgpu_lost(char* text);
}
