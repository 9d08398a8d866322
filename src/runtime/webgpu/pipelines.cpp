#include "runtime/webgpu/pipelines.h"

#include <unordered_set>

#include "support/fail.h"
#include "support/integers.h"
#include "support/text.h"

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
  const std::vector<std::string> lines = split(wgsl, '\n');
  const std::uint64_t last = lines.size() - (lines.back().empty() ? 1 : 0);
  std::string out;
  for (std::uint64_t number = line > around ? line - around : 1;
       number <= std::min(line + around, last); ++number)
    out += fmt::format("\n  {} {:>4} | {}", number == line ? '>' : ' ', number, lines[number - 1]);
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

Completion<std::string> Pipelines::compiler_lines(api::ShaderModule module,
                                                  const std::string& wgsl) {
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
  Completion<std::string> out;
  connection_.when_object(connection_.call.ShaderModuleGetCompilationInfo(module, told),
                          [out, found](const std::exception_ptr& error) {
                            error ? out.set_error(error) : out.set(found->text);
                          });
  return out;
}

Completion<Done> Pipelines::check_shader(Job& job) {
  const api::Functions& call = connection_.call;
  api::ShaderSourceWgsl source;
  source.code = std::string_view(job.spec.wgsl);
  api::LabelDescriptor descriptor;
  descriptor.next = &source.chain;
  descriptor.label = std::string_view(job.spec.name);
  connection_.begin_scope(api::ErrorFilter::validation);
  job.module = {call.DeviceCreateShaderModule(connection_.device(), &descriptor),
                call.ShaderModuleRelease};
  return connection_.end_scope().map([this, module = job.module, name = job.spec.name,
                                      wgsl = job.spec.wgsl](const std::string& message) {
    if (message.empty()) return Completion<Done>(Done{});
    return compiler_lines(module.get(), wgsl).map([name, message](const std::string& lines) {
      throw DeviceError(fmt::format("webgpu: the shader of kernel '{}' was refused:{}", name,
                                    lines.empty() ? "\n  " + message : lines));
      return Done{};
    });
  });
}

Completion<Done> Pipelines::compile(Job& job) {
  const api::Functions& call = connection_.call;
  std::vector<api::ConstantEntry> constants;
  for (const auto& [name, value] : job.spec.overrides)
    constants.push_back({nullptr, std::string_view(name), value});
  api::ComputePipelineDescriptor descriptor;
  descriptor.label = std::string_view(job.spec.name);
  descriptor.layout = job.layout->pipeline.get();
  descriptor.module = job.module.get();
  descriptor.entry_point = std::string_view(job.spec.entry);
  descriptor.constant_count = constants.size();
  descriptor.constants = constants.data();
  const auto answer = std::make_shared<Answer>(Answer{{nullptr, call.ComputePipelineRelease}, {}});
  api::CallbackInfo<api::CreatePipelineCallback> done;
  done.callback = [](api::Status, api::ComputePipeline pipeline, api::StringView message,
                     void* lent_answer, void*) {
    const auto own = taken_back<Answer>(lent_answer);
    own->pipeline.reset(pipeline);
    own->message = message.view();
  };
  done.userdata1 = lent(answer);
  Completion<Done> out;
  connection_.when_object(
      call.DeviceCreateComputePipelineAsync(connection_.device(), &descriptor, done),
      [out, answer](const std::exception_ptr& error) {
        error ? out.set_error(error) : out.set(Done{});
      });
  return out.map([this, answer, &job](Done&) {
    if (!answer->pipeline) {
      connection_.check();  // the loss of the device is the better reason
      throw DeviceError(fmt::format("webgpu: kernel '{}' was refused: {}{}", job.spec.name,
                                    answer->message, excerpt(job.spec.wgsl, 0, 12)));
    }
    job.made = std::make_shared<const Pipeline>(std::move(answer->pipeline), job.layout);
    return Done{};
  });
}

void Pipelines::Build::report() const {
  if (progress) progress({done, static_cast<std::int64_t>(jobs.size()), CompileWork::shaders});
}

Completion<Gpu::PipelineList> Pipelines::get(std::span<const PipelineSpec> specs,
                                             const CompileCallback& progress) {
  const auto build = std::make_shared<Build>();
  build->progress = progress;
  std::unordered_set<std::string> asked;
  for (const PipelineSpec& spec : specs) {
    build->keys.push_back(key_of(spec));
    const std::string& key = build->keys.back();
    build->result.push_back(made_[key].lock());
    if (build->result.back() || !asked.insert(key).second) continue;
    build->jobs.push_back(std::make_shared<Job>(Job{spec, key, nullptr, nullptr, nullptr}));
  }
  build->report();
  std::vector<Completion<Done>> checks;
  for (const auto& job : build->jobs) {  // reports refused shaders before compiling any
    checks.push_back(check_shader(*job));
    job->layout = layout(job->spec.accesses);
  }
  return all(checks)
      .map([this, build](Done&) {
        std::vector<Completion<Done>> compiled;
        for (const auto& job : build->jobs)
          compiled.push_back(compile(*job).map([build, job](Done&) {
            ++build->done;
            build->report();
            return Done{};
          }));
        return all(compiled);
      })
      .map([this, build](Done&) { return finish(*build); });
}

Gpu::PipelineList Pipelines::finish(Build& build) {
  connection_.check();
  std::unordered_map<std::string, std::shared_ptr<const Pipeline>> made;
  for (const auto& job : build.jobs) made_[job->key] = made[job->key] = job->made;
  for (std::size_t i = 0; i < build.keys.size(); ++i)
    if (!build.result[i]) build.result[i] = made.at(build.keys[i]);
  // Drops unused pipelines.
  std::erase_if(made_, [](const auto& entry) { return entry.second.expired(); });
  return std::move(build.result);
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
  if (connection_.adopted()) connection_.report_end_of_scope();
  connection_.check();
  return made;
}

}  // namespace tensorgrad::webgpu
