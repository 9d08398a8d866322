// Generation token by token: feeding the prompt, sampling, streaming text.
#include "tensorgrad/generate.h"

#include <algorithm>
#include <utility>

#include "support/fail.h"
#include "support/integers.h"
#include "support/utf8.h"
#include "tensorgrad/state.h"
#include "text/program.h"

namespace tensorgrad {

struct Generator::Own {
  std::shared_ptr<detail::TextProgram> program;
  Tokenizer tokenizer;
  StateSpec state;
  NamedArrays memory;
  std::int64_t in_cache = 0;  // positions in the state; used only if its capacity is limited
  std::vector<std::int32_t> heard;

  Own(std::shared_ptr<detail::TextProgram> p, Tokenizer t)
      : program(std::move(p)),
        tokenizer(std::move(t)),
        state(program->state()),
        memory(zero_state(state)) {
    if (tokenizer.vocab_size() > program->config().vocab)
      user_error("Generator: the tokenizer has {} tokens, the model {}", tokenizer.vocab_size(),
                 program->config().vocab);
  }

  void start() { memory = zero_state(state), in_cache = 0; }

  std::vector<float> hear(std::int32_t id) {
    const std::vector<std::int32_t> now{id};
    const Result result = program->next().run(feed_state(memory, {{"tokens", now}}));
    const std::span<const float> said =
        result["logits"].floats().first(usize(tokenizer.vocab_size()));
    std::vector<float> logits(said.begin(), said.end());
    memory = state_after(result, state);
    ++in_cache;
    return logits;
  }
};

namespace {

std::shared_ptr<detail::TextProgram> program_for(const Checkpoint& checkpoint,
                                                 const GeneratorOptions& options) {
  if (checkpoint.config.empty())
    user_error("Generator: the checkpoint has no config, so the kind of model is unknown");
  if (checkpoint.tokenizer.empty()) user_error("Generator: the checkpoint has no tokenizer");
  if (options.capacity < 0)
    user_error("Generator: the capacity must not be negative: {}", options.capacity);
  return detail::text_generation(TextModelConfig::from_json(checkpoint.config), options.capacity,
                                 {.device = options.device,
                                  .threads = options.threads,
                                  .without = options.without,
                                  .progress = options.progress});
}

// Uploads one array after the other and frees each, so that the model is in memory only once.
void hand_over(ForwardHandle& program, NamedArrays parameters) {
  const std::vector<ParamInfo> wanted = program.parameters();
  const bool complete = wanted.size() == parameters.size() &&
                        std::all_of(wanted.begin(), wanted.end(), [&](const ParamInfo& info) {
                          return parameters.count(info.name) > 0;
                        });
  if (!complete) program.upload(parameters);  // throws: names missing or unknown parameters
  while (!parameters.empty()) {
    NamedArrays one;
    one.insert(parameters.extract(parameters.begin()));
    program.upload(one, Upload::partial);
  }
}

}  // namespace

Generator::Generator(const Checkpoint& checkpoint, const GeneratorOptions& options) {
  auto program = program_for(checkpoint, options);  // first: reports what is missing
  program->next().upload(checkpoint.parameters);
  own_ = std::make_unique<Own>(std::move(program), Tokenizer::from_json(checkpoint.tokenizer));
}

Generator::Generator(Checkpoint&& checkpoint, const GeneratorOptions& options) {
  checkpoint.optimizer.clear();
  auto program = program_for(checkpoint, options);
  hand_over(program->next(), std::move(checkpoint.parameters));
  own_ = std::make_unique<Own>(std::move(program), Tokenizer::from_json(checkpoint.tokenizer));
}

Generator::Generator(std::shared_ptr<detail::TextProgram> program, Tokenizer tokenizer)
    : own_(std::make_unique<Own>(std::move(program), std::move(tokenizer))) {}

Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

const Tokenizer& Generator::tokenizer() const { return own_->tokenizer; }
const TextModelConfig& Generator::config() const { return own_->program->config(); }
std::string Generator::device() const { return own_->program->next().device(); }
int Generator::threads() const { return own_->program->next().threads(); }

std::vector<float> Generator::listen(std::span<const std::int32_t> ids) {
  if (ids.empty()) user_error("Generator: listen() needs at least one token");
  for (const std::int32_t id : ids)
    if (id < 0 || id >= config().vocab)
      user_error("Generator: token {} is out of range: the vocabulary has {} tokens", id,
                 config().vocab);
  const std::int64_t capacity = own_->program->capacity();
  std::vector<float> logits;
  for (const std::int32_t id : ids) {
    if (capacity > 0 && own_->in_cache == capacity) {
      const auto keep = usize(capacity / 2);
      const std::vector<std::int32_t> again(own_->heard.end() - static_cast<std::ptrdiff_t>(keep),
                                            own_->heard.end());
      own_->start();
      for (const std::int32_t old : again) own_->hear(old);
    }
    logits = own_->hear(id);
    own_->heard.push_back(id);
  }
  return logits;
}

void Generator::forget() {
  own_->start();
  own_->heard.clear();
}

std::span<const std::int32_t> Generator::heard() const { return own_->heard; }

NamedArrays Generator::memory() const { return own_->memory; }

void Generator::remember(const NamedArrays& memory, std::span<const std::int32_t> heard) {
  for (const InputSpec& spec : own_->state) {
    const auto found = memory.find(spec.name);
    if (found == memory.end()) user_error("Generator: the memory has no '{}'", spec.name);
    if (found->second.dtype() != spec.dtype || found->second.shape() != spec.shape)
      user_error("Generator: '{}' is {}{}, the memory has {}{}", spec.name, name(spec.dtype),
                 spec.shape.text(), name(found->second.dtype()), found->second.shape().text());
  }
  std::int64_t held = 0;
  if (const std::int64_t capacity = own_->program->capacity(); capacity > 0) {
    held = memory.at("position").ints()[0];
    if (held < 0 || held > capacity || held > static_cast<std::int64_t>(heard.size()))
      user_error("Generator: the memory holds {} positions of {}, {} tokens were heard", held,
                 capacity, heard.size());
  }
  own_->memory = memory;
  own_->in_cache = held;
  own_->heard.assign(heard.begin(), heard.end());
}

namespace {

// Streams text: emits only whole characters, and holds back text that may begin a stop text.
class Outlet {
 public:
  Outlet(const std::vector<std::string>& stop, const std::function<bool(std::string_view)>& on_text)
      : stop_(stop), on_text_(on_text) {}

  // Returns false at the end.
  bool add(std::string_view bytes) {
    pending_ += bytes;
    std::size_t stop = std::string::npos;
    for (const std::string& text : stop_) stop = std::min(stop, pending_.find(text));
    if (stop != std::string::npos) {
      pending_.resize(stop);
      flush();
      return false;
    }
    return give(pending_.size() - std::max(incomplete_tail(pending_), begun()));
  }

  // Emits the rest as it is.
  void flush() { give(pending_.size()); }

  std::string all() && { return std::move(all_); }

 private:
  // Number of bytes at the end that may begin a stop text.
  std::size_t begun() const {
    std::size_t longest = 0;
    for (const std::string& text : stop_)
      for (std::size_t n = std::min(text.size() - 1, pending_.size()); n > longest; --n)
        if (std::string_view(pending_).substr(pending_.size() - n) ==
            std::string_view(text).substr(0, n))
          longest = n;
    return longest;
  }

  bool give(std::size_t count) {
    if (count == 0) return true;
    const std::string piece = pending_.substr(0, count);
    pending_.erase(0, count);
    all_ += piece;
    return !on_text_ || on_text_(piece);
  }

  const std::vector<std::string>& stop_;
  const std::function<bool(std::string_view)>& on_text_;
  std::string pending_, all_;
};

// The first token if the prompt is empty.
std::int32_t beginning_of(const Tokenizer& tokenizer) {
  const std::int32_t line = tokenizer.find("\n");
  return line >= 0 ? line : 0;
}

}  // namespace

std::string generate(Generator& model, std::string_view prompt, const GenerateOptions& options) {
  if (options.tokens < 0) user_error("generate: tokens must not be negative: {}", options.tokens);
  for (const std::string& text : options.stop)
    if (text.empty()) user_error("generate: an empty stop text would stop at once");
  Sampler sampler({.temperature = options.temperature,
                   .top_k = options.top_k,
                   .top_p = options.top_p,
                   .min_p = options.min_p,
                   .repetition_penalty = options.repetition_penalty,
                   .seed = options.seed});
  std::vector<std::int32_t> ids = model.tokenizer().encode(prompt);
  if (ids.empty()) ids.push_back(beginning_of(model.tokenizer()));
  Outlet outlet(options.stop, options.on_text);
  // Each token seen so far, listed once, so that a long text costs no more.
  std::vector<std::int32_t> seen;
  std::vector<bool> is_seen(usize(model.config().vocab));
  const auto see = [&](std::int32_t id) {
    if (!is_seen[usize(id)]) seen.push_back(id);
    is_seen[usize(id)] = true;
  };
  std::vector<float> logits = model.listen(ids);
  for (const std::int32_t id : model.heard()) see(id);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::int32_t id = sampler.pick(logits, seen);
    see(id);
    const bool more = outlet.add(model.tokenizer().token(id));
    // Feed the last token as well, so that a later call continues after it.
    logits = model.listen(std::span(&id, 1));
    if (!more) return std::move(outlet).all();
  }
  outlet.flush();
  return std::move(outlet).all();
}

}  // namespace tensorgrad
