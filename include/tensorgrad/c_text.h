/* The C interface for language models on text: tokenizers, training and generation. The rules of
 * tensorgrad/c.h apply. */
#ifndef TENSORGRAD_C_TEXT_H
#define TENSORGRAD_C_TEXT_H

#include "tensorgrad/c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tg_tokenizer tg_tokenizer;
typedef struct tg_trainer tg_trainer;     /* a language model in training */
typedef struct tg_generator tg_generator; /* a language model that writes */

/* `options`: {"kind": "bytes"}, {"kind": "characters", "text"}, {"kind": "bpe", "vocab", "merges",
 * "special"}, or {"kind": "train", "text", "vocab", "special"}, which learns byte pairs. */
tg_tokenizer* tg_tokenizer_new(const char* options);
/* What tg_tokenizer_json() returned: the whole tokenizer. */
tg_tokenizer* tg_tokenizer_from_json(const char* json);
const char* tg_tokenizer_json(tg_tokenizer* tokenizer);
/* {"kind", "vocab"}. */
const char* tg_tokenizer_info(tg_tokenizer* tokenizer);
/* Returns the number of ids, or -1. `ids` stays valid until the next call. */
long tg_tokenizer_encode(tg_tokenizer* tokenizer, const char* text, size_t size,
                         const int32_t** ids);
/* Returns the bytes of the text, or NULL. */
const char* tg_tokenizer_decode(tg_tokenizer* tokenizer, const int32_t* ids, size_t count,
                                size_t* size);
void tg_tokenizer_free(tg_tokenizer* tokenizer);

/* `options`: {"model": TextModelConfig, "training": TrainerOptions, "validation": 0.1}. The value
 * is a trainer. */
tg_future* tg_trainer_new(tg_tokenizer* tokenizer, const char* text, size_t size,
                          const char* options);
tg_trainer* tg_future_trainer(tg_future* future); /* belongs to the caller */
/* The text of the value is JSON: {"step", "loss", "grad_norm", "lr"}. */
tg_future* tg_trainer_step(tg_trainer* trainer);
/* The learning rate from the next step on: a number, or a schedule as in tensorgrad/c.h. Call it
 * before tg_trainer_restore() to continue a run that had such a rate. */
int tg_trainer_set_lr(tg_trainer* trainer, const char* lr);
/* {"loss", "perplexity", "bits_per_byte"}. tokens: 0 for the whole validation part. */
tg_future* tg_trainer_validate(tg_trainer* trainer, int64_t tokens);
tg_future* tg_trainer_checkpoint(tg_trainer* trainer);
tg_future* tg_trainer_restore(tg_trainer* trainer, const tg_checkpoint* checkpoint);
/* Text that the model writes after the prompt, with its current weights. `options` has the fields
 * of GenerateOptions. The text of the value is what it wrote, as a JSON string: a model may write
 * NUL, and bytes that are not UTF-8, which become U+FFFD. */
tg_future* tg_trainer_generate(tg_trainer* trainer, const char* prompt, const char* options);
/* The text that was written since the last call, while tg_trainer_generate() is under way: a JSON
 * string. */
const char* tg_trainer_pieces(tg_trainer* trainer);
/* Ends the texts that are being written: their values are what was written so far. */
int tg_trainer_stop(tg_trainer* trainer);
/* {"config", "parameters", "device", "steps", "counts"}. */
const char* tg_trainer_info(tg_trainer* trainer);
/* The compiler's view of a training step, as for a program. The steps of a profile are made on the
 * next batch and update the parameters: to go on as before, restore a checkpoint from before. */
const char* tg_trainer_show(tg_trainer* trainer, const char* stage);
const char* tg_trainer_plan(tg_trainer* trainer);
tg_future* tg_trainer_profile(tg_trainer* trainer, int steps);
void tg_trainer_free(tg_trainer* trainer);

/* `options` has the fields of GeneratorOptions. The value is a generator. */
tg_future* tg_generator_new(const tg_checkpoint* checkpoint, const char* options);
tg_generator* tg_future_generator(tg_future* future);
/* Continues after everything that the model has read and written before. */
tg_future* tg_generator_generate(tg_generator* generator, const char* prompt, const char* options);
/* As for a trainer. */
const char* tg_generator_pieces(tg_generator* generator);
int tg_generator_stop(tg_generator* generator);
/* Clears what the model has read. */
int tg_generator_forget(tg_generator* generator);
/* The tokenizer of the checkpoint; it belongs to the caller. */
tg_tokenizer* tg_generator_tokenizer(tg_generator* generator);
/* {"config", "vocab", "device"}. */
const char* tg_generator_info(tg_generator* generator);
void tg_generator_free(tg_generator* generator);

#ifdef __cplusplus
}
#endif

#endif
