#include "runtime/webgpu/pipelines.h"

#include <sstream>

#include "support/fail.h"
#include "support/integers.h"

namespace tensorgrad::webgpu {

namespace {

std::string key_of(const PipelineSpec& spec) {
  std::string key = spec.entry + '\n';
  for (const Access access : spec.accesses) key += static_cast<char>(access);
  for (const auto& [name, value] : spec.overrides) key += fmt::format("\n{}={}", name, value);
  return key + '\n' + spec.wgsl;
}

// The lines around `line` (counted from 1) with their numbers, and a mark at that line.
std::string excerpt(const std::string& wgsl, std::uint64_t line, std::uint64_t around) {
  std::istringstream lines(wgsl);
  std::string text, out;
  for (std::uint64_t number = 1; std::getline(lines, text); ++number) {
    if (number + around < line || number > line + around) continue;
    out += fmt::format("\n  {} {:>4} | {}", number == line ? '>' : ' ', number, text);
  }
  return out;
}

// The driver's answer to a request for a pipeline. It may come after the caller gave up waiting.
struct Answer {
  Handle<api::ComputePipelineImpl> pipeline;
  std::string message;
};

}  // namespace

std::shared_ptr<const Layout> Pipelines::layout(const std::vector<Access>& accesses) {
  std::shared_ptr<const Layout>& known = layouts_[accesses];
  if (known) return known;
  std::vector<api::BindGroupLayoutEntry> entries(accesses.size());
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    entries[i].binding = static_cast<std::uint32_t>(i);
    entries[i].buffer.type = accesses[i] == Access::read ? api::BufferBindingType::read_only_storage
                             : accesses[i] == Access::write ? api::BufferBindingType::storage
                                                            : api::BufferBindingType::uniform;
  }
  const api::Functions& call = connection_.call;
  api::BindGroupLayoutDescriptor group;
  group.entry_count = entries.size();
  group.entries = entries.data();
  Handle<api::BindGroupLayoutImpl> made(
      call.DeviceCreateBindGroupLayout(connection_.device(), &group), call.BindGroupLayoutRelease);
  const api::BindGroupLayout groups[] = {made.get()};
  api::PipelineLayoutDescriptor pipeline;
  pipeline.layout_count = 1;
  pipeline.layouts = groups;
  Handle<api::PipelineLayoutImpl> whole(
      call.DeviceCreatePipelineLayout(connection_.device(), &pipeline), call.PipelineLayoutRelease);
  known = std::make_shared<Layout>(Layout{accesses, std::move(made), std::move(whole)});
  return known;
}

std::string Pipelines::compiler_lines(api::ShaderModule module, const std::string& wgsl) {
  struct Found {
    std::string wgsl, text;
  };
  const auto found = std::make_shared<Found>(Found{wgsl, {}});
  api::CallbackInfo<api::CompilationInfoCallback> told;
  told.callback = [](api::Status, const api::CompilationInfo* info, void* result, void*) {
    const auto lent_found = taken_back<Found>(result);
    Found& out = *lent_found;
    for (std::size_t i = 0; info && i < info->message_count; ++i) {
      const api::CompilationMessage& message = info->messages[i];
      if (message.type != api::MessageType::error) continue;
      out.text += fmt::format("\n  line {}, column {}: {}", message.line_num, message.line_pos,
                              message.message.view());
      out.text += excerpt(out.wgsl, message.line_num, 2);
    }
  };
  told.userdata1 = lent(found);
  connection_.wait(connection_.call.ShaderModuleGetCompilationInfo(module, told),
                   "the shader compiler's messages");
  return found->text;
}

Handle<api::ShaderModuleImpl> Pipelines::module(const PipelineSpec& spec) {
  const api::Functions& call = connection_.call;
  api::ShaderSourceWgsl source;
  source.code = std::string_view(spec.wgsl);
  api::LabelDescriptor descriptor;
  descriptor.next = &source.chain;
  descriptor.label = std::string_view(spec.name);
  connection_.begin_scope(api::ErrorFilter::validation);
  Handle<api::ShaderModuleImpl> module(
      call.DeviceCreateShaderModule(connection_.device(), &descriptor), call.ShaderModuleRelease);
  if (const std::string message = connection_.end_scope(); !message.empty()) {
    const std::string lines = compiler_lines(module.get(), spec.wgsl);
    throw DeviceError(fmt::format("webgpu: the shader of kernel '{}' was refused:{}", spec.name,
                                  lines.empty() ? "\n  " + message : lines));
  }
  return module;
}

std::vector<std::shared_ptr<const Pipeline>> Pipelines::get(std::span<const PipelineSpec> specs,
                                                            const CompileCallback& progress) {
  const api::Functions& call = connection_.call;
  struct Job {
    const PipelineSpec* spec;
    Handle<api::ShaderModuleImpl> module;
    std::shared_ptr<const Layout> layout;
    std::shared_ptr<Answer> answer;
    api::Future future = {};
  };
  std::vector<Job> jobs;
  std::unordered_map<std::string, std::size_t> job_of;
  std::vector<std::string> keys;
  std::vector<std::shared_ptr<const Pipeline>> result;
  for (const PipelineSpec& spec : specs) {
    keys.push_back(key_of(spec));
    result.push_back(made_[keys.back()].lock());
    if (result.back() || !job_of.emplace(keys.back(), jobs.size()).second) continue;
    jobs.push_back({&spec, {nullptr, nullptr}, nullptr, nullptr});
  }
  const auto total = static_cast<std::int64_t>(jobs.size());
  const auto report = [&](std::int64_t done) {
    if (progress) progress({done, total, CompileWork::shaders});
  };
  report(0);
  for (Job& job : jobs) {  // reports refused shaders before compiling any
    job.module = module(*job.spec);
    job.layout = layout(job.spec->accesses);
    job.answer = std::make_shared<Answer>(Answer{{nullptr, call.ComputePipelineRelease}, {}});
  }
  for (Job& job : jobs) {
    std::vector<api::ConstantEntry> constants;
    for (const auto& [name, value] : job.spec->overrides)
      constants.push_back({nullptr, std::string_view(name), value});
    api::ComputePipelineDescriptor descriptor;
    descriptor.label = std::string_view(job.spec->name);
    descriptor.layout = job.layout->pipeline.get();
    descriptor.module = job.module.get();
    descriptor.entry_point = std::string_view(job.spec->entry);
    descriptor.constant_count = constants.size();
    descriptor.constants = constants.data();
    api::CallbackInfo<api::CreatePipelineCallback> done;
    done.callback = [](api::Status, api::ComputePipeline pipeline, api::StringView message,
                       void* answer, void*) {
      const auto own = taken_back<Answer>(answer);
      own->pipeline.reset(pipeline);
      own->message = message.view();
    };
    done.userdata1 = lent(job.answer);
    job.future = call.DeviceCreateComputePipelineAsync(connection_.device(), &descriptor, done);
  }
  for (std::int64_t i = 0; i < total; ++i) {
    connection_.wait(jobs[usize(i)].future, "compiling a kernel");
    report(i + 1);
  }
  connection_.check();
  std::vector<std::shared_ptr<const Pipeline>> made;
  for (const Job& job : jobs) {
    if (!job.answer->pipeline)
      throw DeviceError(fmt::format("webgpu: kernel '{}' was refused: {}{}", job.spec->name,
                                    job.answer->message, excerpt(job.spec->wgsl, 0, 12)));
    made.push_back(std::make_shared<const Pipeline>(std::move(job.answer->pipeline), job.layout));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (result[i]) continue;
    result[i] = made[job_of.at(keys[i])];
    made_[keys[i]] = result[i];
  }
  // Drops unused pipelines.
  std::erase_if(made_, [](const auto& entry) { return entry.second.expired(); });
  return result;
}

std::shared_ptr<const BindGroup> Pipelines::bind(const Pipeline& pipeline,
                                                 std::span<const Binding> bindings) {
  const Layout& layout = pipeline.layout();
  if (bindings.size() != layout.accesses.size())
    internal_error("webgpu: {} bindings for a kernel with {}", bindings.size(),
                   layout.accesses.size());
  std::vector<api::BindGroupEntry> entries(bindings.size());
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const Binding& binding = bindings[i];
    const std::uint64_t bytes =
        binding.bytes ? binding.bytes : binding.buffer->bytes() - binding.offset;
    const Limits& limits = connection_.info.limits;
    if (binding.offset % limits.binding_alignment ||
        binding.offset + bytes > binding.buffer->bytes())
      internal_error("webgpu: binding {} is [{}, +{}) of a buffer of {} bytes, alignment {}", i,
                     binding.offset, bytes, binding.buffer->bytes(), limits.binding_alignment);
    entries[i].binding = static_cast<std::uint32_t>(i);
    entries[i].buffer = binding.buffer->get();
    entries[i].offset = binding.offset;
    entries[i].size = bytes;
  }
  api::BindGroupDescriptor descriptor;
  descriptor.layout = layout.group.get();
  descriptor.entry_count = entries.size();
  descriptor.entries = entries.data();
  const api::Functions& call = connection_.call;
  if (connection_.adopted()) connection_.begin_scope(api::ErrorFilter::validation);
  auto made = std::make_shared<const BindGroup>(Handle<api::BindGroupImpl>(
      call.DeviceCreateBindGroup(connection_.device(), &descriptor), call.BindGroupRelease));
  if (connection_.adopted()) {
    if (const std::string message = connection_.end_scope(); !message.empty())
      connection_.report(api::ErrorType::validation, message);
  }
  connection_.check();
  return made;
}

}  // namespace tensorgrad::webgpu
