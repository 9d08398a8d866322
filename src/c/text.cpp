// Language models on text: tokenizers, trainers and generators as handles.
#include <fmt/format.h>

#include "c/object.h"
#include "c/objects.h"
#include "compile/report_json.h"
#include "support/fail.h"
#include "tensorgrad/c_text.h"
#include "tensorgrad/generate.h"
#include "tensorgrad/tokenizer.h"
#include "tensorgrad/trainer.h"
#include "text/words.h"

using namespace tensorgrad;
using namespace tensorgrad::c;

namespace {

// Text that is being generated. The callbacks of its calls share it with the handle.
class Writing {
 public:
  // The options of a call that begins now.
  GenerateOptions with(GenerateOptions options) const {
    options.on_text = [own = own_, mine = own_->stops](std::string_view piece) {
      if (own->stops != mine) return false;
      own->pieces += piece;
      return true;
    };
    return options;
  }
  std::string take() { return std::exchange(own_->pieces, {}); }
  void stop() { ++own_->stops; }

 private:
  struct Own {
    std::string pieces;
    std::int64_t stops = 0;  // calls that began before the last one end
  };
  std::shared_ptr<Own> own_ = std::make_shared<Own>();
};

}  // namespace

struct tg_tokenizer : Handle<tg_tokenizer> {
  static constexpr const char* kKind = "tokenizer";
  Tokenizer value;
  std::string text;
  std::vector<std::int32_t> ids;
  explicit tg_tokenizer(Tokenizer made) : value(std::move(made)) {}
};

struct tg_trainer : Handle<tg_trainer> {
  static constexpr const char* kKind = "trainer";
  Trainer value;
  Writing writing;
  std::string text;
  explicit tg_trainer(Trainer made) : value(std::move(made)) {}
};

struct tg_generator : Handle<tg_generator> {
  static constexpr const char* kKind = "generator";
  Generator value;
  Writing writing;
  std::string text;
  explicit tg_generator(Generator made) : value(std::move(made)) {}
};

namespace {

// The address stands for the type. A page's download has no room for that of dynamic_cast.
template <class T>
constexpr char kTypeOf = 0;

// A trainer or a generator that a future holds.
template <class T>
void hold(tg_value& value, T& made) {
  value.other = std::make_shared<T>(std::move(made));
  value.type_of_other = &kTypeOf<T>;
}

template <class T>
T take(tg_future* future, const char* what) {
  tg_value& value = given(future, "future").value();
  if (!value.other || value.type_of_other != &kTypeOf<T>)
    user_error("future: its value is no {}, or was taken", what);
  const auto held = std::static_pointer_cast<T>(std::exchange(value.other, nullptr));
  return std::move(*held);
}

std::string_view text_of(const char* text, std::size_t size) { return {text, text ? size : 0}; }

Tokenizer make_tokenizer(const char* given_options) {
  const JsonDocument document = read_object(given_options, "tokenizer");
  Object options(document.root(), "tokenizer");
  const auto kind = options.require<std::string>("kind");
  std::vector<std::string> special;
  Tokenizer made = Tokenizer::bytes();
  if (kind == "characters") {
    made = Tokenizer::characters(options.require<std::string>("text"));
  } else if (kind == "bpe") {
    options.read("special", special);
    const auto vocab = options.require<std::string>("vocab");
    made = Tokenizer::parse_bpe(vocab, options.require<std::string>("merges"), special);
  } else if (kind == "train") {
    options.read("special", special);
    Tokenizer::Training training(special);
    training.add(options.require<std::string>("text"));
    made = training.finish(options.require<std::int64_t>("vocab"));
  } else if (kind != "bytes") {
    user_error("tokenizer: unknown kind '{}'\n  hint: bytes, characters, bpe, train", kind);
  }
  options.finish();
  return made;
}

TrainerOptions read_trainer(const Json* json) {
  TrainerOptions options;
  if (!json) return options;
  Object from(*json, "training");
  from.read("batch", options.batch);
  from.read("steps", options.steps);
  from.read("lr", options.lr);
  from.read("warmup", options.warmup);
  from.read("lr_schedule", options.lr_schedule);
  from.read("last_lr_share", options.last_lr_share);
  from.read("weight_decay", options.weight_decay);
  from.read("clip_grad_norm", options.clip_grad_norm);
  from.read("accumulate", options.accumulate);
  from.read("seed", options.seed);
  from.read("device", options.device);
  from.read("threads", options.threads);
  from.read("without", options.without);
  from.finish();
  return options;
}

GenerateOptions read_generate(const char* text) {
  const JsonDocument document = read_object(text, "generate");
  Object from(document.root(), "generate");
  GenerateOptions options;
  from.read("tokens", options.tokens);
  from.read("temperature", options.temperature);
  from.read("top_k", options.top_k);
  from.read("top_p", options.top_p);
  from.read("min_p", options.min_p);
  from.read("repetition_penalty", options.repetition_penalty);
  from.read("seed", options.seed);
  from.read("stop", options.stop);
  from.finish();
  return options;
}

// As JSON, because a model may write NUL, and bytes that are not UTF-8.
void fill_text(tg_value& value, const std::string& text) {
  value.text = JsonText().value(text).take();
}

}  // namespace

// ---- tokenizers

tg_tokenizer* tg_tokenizer_new(const char* options) {
  return guarded(nullptr,
                 [&]() -> tg_tokenizer* { return new tg_tokenizer(make_tokenizer(options)); });
}

tg_tokenizer* tg_tokenizer_from_json(const char* json) {
  return guarded(nullptr, [&]() -> tg_tokenizer* {
    return new tg_tokenizer(Tokenizer::from_json(text_or(json)));
  });
}

const char* tg_tokenizer_json(tg_tokenizer* tokenizer) {
  return guarded(nullptr, [&]() -> const char* {
    tokenizer->text = given(tokenizer, "tokenizer").value.to_json();
    return tokenizer->text.c_str();
  });
}

const char* tg_tokenizer_info(tg_tokenizer* tokenizer) {
  return guarded(nullptr, [&]() -> const char* {
    const Tokenizer& value = given(tokenizer, "tokenizer").value;
    tokenizer->text = JsonText()
                          .begin('{')
                          .field("kind", value.kind())
                          .field("vocab", value.vocab_size())
                          .end('}')
                          .take();
    return tokenizer->text.c_str();
  });
}

long tg_tokenizer_encode(tg_tokenizer* tokenizer, const char* text, size_t size,
                         const int32_t** ids) {
  return guarded(-1L, [&]() -> long {
    tokenizer->ids = given(tokenizer, "tokenizer").value.encode(text_of(text, size));
    *ids = tokenizer->ids.data();
    return static_cast<long>(tokenizer->ids.size());
  });
}

const char* tg_tokenizer_decode(tg_tokenizer* tokenizer, const int32_t* ids, size_t count,
                                size_t* size) {
  return guarded(nullptr, [&]() -> const char* {
    tokenizer->text = given(tokenizer, "tokenizer").value.decode({ids, ids ? count : 0});
    *size = tokenizer->text.size();
    return tokenizer->text.c_str();
  });
}

void tg_tokenizer_free(tg_tokenizer* tokenizer) { free_handle(tokenizer); }

// ---- training

tg_future* tg_trainer_new(tg_tokenizer* tokenizer, const char* text, size_t size,
                          const char* options) {
  return guarded(nullptr, [&]() -> tg_future* {
    const Tokenizer& own = given(tokenizer, "tokenizer").value;
    const JsonDocument document = read_object(options, "trainer");
    Object from(document.root(), "trainer");
    TextModelConfig config;
    if (const Json* model = from.find("model"))
      config = TextModelConfig::from_json(model->to_json());
    TrainerOptions training = read_trainer(from.find("training"));
    TextDataOptions data;
    from.read("validation", data.validation);
    from.finish();
    const auto state = std::make_shared<tg_future::State>();
    training.progress = progress_of(state);
    return waiting(
        Trainer::make_async(config, own, TextData::of(text_of(text, size), own, data), training),
        hold<Trainer>, state);
  });
}

tg_trainer* tg_future_trainer(tg_future* future) {
  return guarded(nullptr,
                 [&]() -> tg_trainer* { return new tg_trainer(take<Trainer>(future, "trainer")); });
}

tg_future* tg_trainer_step(tg_trainer* trainer) {
  return guarded(nullptr, [&]() -> tg_future* {
    return waiting(given(trainer, "trainer").value.step_async(),
                   [](tg_value& value, const StepReport& report) {
                     value.text = JsonText()
                                      .begin('{')
                                      .field("step", report.step)
                                      .field("loss", static_cast<double>(report.loss))
                                      .field("grad_norm", static_cast<double>(report.grad_norm))
                                      .field("lr", report.lr)
                                      .end('}')
                                      .take();
                   });
  });
}

int tg_trainer_set_lr(tg_trainer* trainer, const char* lr) {
  return guarded(0, [&] {
    const JsonDocument document = read_json(text_or(lr), "lr");
    given(trainer, "trainer").value.set_lr(read_schedule(document.root()));
    return 1;
  });
}

tg_future* tg_trainer_validate(tg_trainer* trainer, int64_t tokens) {
  return guarded(nullptr, [&]() -> tg_future* {
    return waiting(given(trainer, "trainer").value.validate_async(tokens),
                   [](tg_value& value, const Validation& validation) {
                     value.text = JsonText()
                                      .begin('{')
                                      .field("loss", validation.loss)
                                      .field("perplexity", validation.perplexity)
                                      .field("bits_per_byte", validation.bits_per_byte)
                                      .end('}')
                                      .take();
                   });
  });
}

tg_future* tg_trainer_checkpoint(tg_trainer* trainer) {
  return guarded(nullptr, [&]() -> tg_future* {
    return waiting(given(trainer, "trainer").value.checkpoint_async(),
                   [](tg_value& value, Checkpoint& checkpoint) {
                     value.checkpoint = std::make_unique<tg_checkpoint>(std::move(checkpoint));
                   });
  });
}

tg_future* tg_trainer_restore(tg_trainer* trainer, const tg_checkpoint* checkpoint) {
  return guarded(nullptr, [&]() -> tg_future* {
    return waiting(
        given(trainer, "trainer").value.restore_async(given(checkpoint, "checkpoint").value),
        [](tg_value&, Done&) {});
  });
}

tg_future* tg_trainer_generate(tg_trainer* trainer, const char* prompt, const char* options) {
  return guarded(nullptr, [&]() -> tg_future* {
    tg_trainer& own = given(trainer, "trainer");
    const GenerateOptions read = own.writing.with(read_generate(options));
    const auto generated = own.value.generator_async().and_then(
        [text = std::string(text_or(prompt)), read](Generator* made) {
          made->forget();
          return made->generate_async(text, read);
        });
    return waiting(generated, fill_text);
  });
}

const char* tg_trainer_pieces(tg_trainer* trainer) {
  return guarded(nullptr, [&]() -> const char* {
    trainer->text = JsonText().value(given(trainer, "trainer").writing.take()).take();
    return trainer->text.c_str();
  });
}

int tg_trainer_stop(tg_trainer* trainer) {
  return guarded(0, [&] {
    given(trainer, "trainer").writing.stop();
    return 1;
  });
}

const char* tg_trainer_info(tg_trainer* trainer) {
  return guarded(nullptr, [&]() -> const char* {
    Trainer& value = given(trainer, "trainer").value;
    std::int64_t parameters = 0;
    for (const ParamInfo& info : value.training().parameters()) parameters += info.shape.count();
    trainer->text = JsonText()
                        .begin('{')
                        .key("config")
                        .raw(value.config().to_json())
                        .field("parameters", parameters)
                        .field("device", value.training().device())
                        .field("steps", value.steps())
                        .key("counts")
                        .raw(detail::json_of(value.training().counts()))
                        .end('}')
                        .take();
    return trainer->text.c_str();
  });
}

const char* tg_trainer_show(tg_trainer* trainer, const char* stage) {
  return guarded(nullptr, [&]() -> const char* {
    trainer->text = given(trainer, "trainer").value.training().show(text_or(stage));
    return trainer->text.c_str();
  });
}

const char* tg_trainer_plan(tg_trainer* trainer) {
  return guarded(nullptr, [&]() -> const char* {
    trainer->text = detail::json_of(given(trainer, "trainer").value.training().plan());
    return trainer->text.c_str();
  });
}

tg_future* tg_trainer_profile(tg_trainer* trainer, int steps) {
  return guarded(nullptr, [&]() -> tg_future* {
    return waiting(given(trainer, "trainer").value.profile_async(steps), fill_times);
  });
}

void tg_trainer_free(tg_trainer* trainer) { free_handle(trainer); }

// ---- generation

tg_future* tg_generator_new(const tg_checkpoint* checkpoint, const char* options) {
  return guarded(nullptr, [&]() -> tg_future* {
    const JsonDocument document = read_object(options, "generator");
    Object from(document.root(), "generator");
    GeneratorOptions read;
    from.read("device", read.device);
    from.read("threads", read.threads);
    from.read("without", read.without);
    from.read("capacity", read.capacity);
    from.finish();
    const auto state = std::make_shared<tg_future::State>();
    read.progress = progress_of(state);
    return waiting(Generator::make_async(given(checkpoint, "checkpoint").value, read),
                   hold<Generator>, state);
  });
}

tg_generator* tg_future_generator(tg_future* future) {
  return guarded(nullptr, [&]() -> tg_generator* {
    return new tg_generator(take<Generator>(future, "generator"));
  });
}

tg_future* tg_generator_generate(tg_generator* generator, const char* prompt, const char* options) {
  return guarded(nullptr, [&]() -> tg_future* {
    tg_generator& own = given(generator, "generator");
    const GenerateOptions read = own.writing.with(read_generate(options));
    return waiting(own.value.generate_async(text_or(prompt), read), fill_text);
  });
}

const char* tg_generator_pieces(tg_generator* generator) {
  return guarded(nullptr, [&]() -> const char* {
    generator->text = JsonText().value(given(generator, "generator").writing.take()).take();
    return generator->text.c_str();
  });
}

int tg_generator_stop(tg_generator* generator) {
  return guarded(0, [&] {
    given(generator, "generator").writing.stop();
    return 1;
  });
}

int tg_generator_forget(tg_generator* generator) {
  return guarded(0, [&] {
    given(generator, "generator").value.forget();
    return 1;
  });
}

tg_tokenizer* tg_generator_tokenizer(tg_generator* generator) {
  return guarded(nullptr, [&]() -> tg_tokenizer* {
    return new tg_tokenizer(given(generator, "generator").value.tokenizer());
  });
}

const char* tg_generator_info(tg_generator* generator) {
  return guarded(nullptr, [&]() -> const char* {
    const Generator& value = given(generator, "generator").value;
    generator->text = JsonText()
                          .begin('{')
                          .key("config")
                          .raw(value.config().to_json())
                          .field("vocab", value.tokenizer().vocab_size())
                          .field("device", value.device())
                          .end('}')
                          .take();
    return generator->text.c_str();
  });
}

void tg_generator_free(tg_generator* generator) { free_handle(generator); }
