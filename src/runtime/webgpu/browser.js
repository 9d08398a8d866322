// WebGPU for library_browser.cpp, as a library of Emscripten: functions over the GPUDevice that the
// page passes as `gpu` to create(). Nothing here waits. What a promise brings goes to the C++ side by
// webgpu_arrived(), and then the page's onArrived() is called, which should call tg_poll().
mergeInto(LibraryManager.library, {
  $webgpu__deps: ['malloc'],
  $webgpu: {
    objects: [null], // by number
    free: [], // numbers to use again
    recording: 0, // encoders and command buffers that were not submitted
    dying: [], // buffers that such an encoder may use
    constants: {}, // of the next pipeline
    noMemory: false, // the next error scope reports a lack of memory
    listens: false,

    device: function () {
      return Module['gpu']['device'];
    },
    add: function (object) {
      const number = webgpu.free.length ? webgpu.free.pop() : webgpu.objects.length;
      webgpu.objects[number] = object;
      return number;
    },
    remove: function (number) {
      const object = webgpu.objects[number];
      webgpu.objects[number] = null;
      webgpu.free.push(number);
      return object;
    },
    // A buffer lives as long as its number or a bind group. Garbage collection would free its memory
    // too late.
    drop: function (buffer) {
      if (--buffer.users > 0) return;
      if (webgpu.recording > 0) webgpu.dying.push(buffer.gpu);
      else buffer.gpu.destroy();
    },
    recorded: function () {
      if (--webgpu.recording > 0) return;
      for (const buffer of webgpu.dying.splice(0)) buffer.destroy();
    },
    text: function (pointer, size) {
      return UTF8ToString(pointer, size);
    },
    // A copy of the text in memory; 0 if there is no memory.
    keep: function (text) {
      const size = lengthBytesUTF8(text) + 1;
      const pointer = _malloc(size);
      if (pointer) stringToUTF8(text, pointer, size);
      return pointer;
    },
    announce: function () {
      if (Module['onArrived']) Module['onArrived']();
    },
    // Answers a request with what the promise brings. `take` passes it on.
    answer: function (request, promise, take) {
      promise.then(take, (error) => {
        _webgpu_arrived(request, 0, 0, webgpu.keep(error.message));
      }).then(webgpu.announce);
    },
    kind: function (error) {
      const name = error.constructor.name;
      return name === 'GPUValidationError' ? 2 : name === 'GPUOutOfMemoryError' ? 3 : 4;
    },
    listen: function (device) {
      webgpu.listens = true;
      const report = (event) => {
        if (event.preventDefault) event.preventDefault(); // it becomes an error of the next call
        _webgpu_reported(webgpu.kind(event.error), webgpu.keep(event.error.message));
        webgpu.announce();
      };
      device.addEventListener('uncapturederror', report);
      device.lost.then((info) => {
        device.removeEventListener('uncapturederror', report);
        _webgpu_lost(webgpu.keep(info.message));
        webgpu.announce();
      });
    },
  },

  webgpu_available__deps: ['$webgpu'],
  webgpu_available: function () {
    const gpu = Module['gpu'];
    if (!gpu || !gpu['device']) return 0;
    if (!webgpu.listens) webgpu.listen(gpu['device']);
    return 1;
  },

  webgpu_info_text__deps: ['$webgpu'],
  webgpu_info_text: function (key) {
    const gpu = Module['gpu'] || {};
    const info = (gpu['adapter'] && gpu['adapter'].info) || (gpu['device'] || {}).adapterInfo || {};
    switch (UTF8ToString(key)) {
      case 'message':
        return webgpu.keep(
          gpu['message'] || 'the library was loaded without a GPU\n  hint: create({gpu: await openGpu()})',
        );
      case 'name':
        return webgpu.keep(
          info.device || info.description || [info.vendor, info.architecture].filter(Boolean).join(' ') || 'GPU',
        );
      default:
        return webgpu.keep(info[UTF8ToString(key)] || '');
    }
  },

  webgpu_info_number__deps: ['$webgpu'],
  webgpu_info_number: function (key) {
    const gpu = Module['gpu'];
    const adapter = gpu['adapter'] || {};
    const name = UTF8ToString(key);
    const info = adapter.info || gpu['device'].adapterInfo || {};
    return Number(info[name] || adapter[name] || 0);
  },

  webgpu_limit__deps: ['$webgpu'],
  webgpu_limit: function (opened, key) {
    const gpu = Module['gpu'];
    return ((!opened && gpu['adapter']) || gpu['device']).limits[UTF8ToString(key)] || 0;
  },

  webgpu_feature__deps: ['$webgpu'],
  webgpu_feature: function (opened, name) {
    const gpu = Module['gpu'];
    return ((!opened && gpu['adapter']) || gpu['device']).features.has(UTF8ToString(name)) ? 1 : 0;
  },

  webgpu_push_error_scope__deps: ['$webgpu'],
  webgpu_push_error_scope: function (filter) {
    webgpu.device().pushErrorScope(['', 'validation', 'out-of-memory', 'internal'][filter]);
  },

  webgpu_pop_error_scope__deps: ['$webgpu'],
  webgpu_pop_error_scope: function (request) {
    const noMemory = webgpu.noMemory;
    webgpu.noMemory = false;
    webgpu.answer(request, webgpu.device().popErrorScope(), (error) => {
      const text = noMemory ? 'injected' : error ? error.message : '';
      const kind = noMemory ? 3 : error ? webgpu.kind(error) : 1;
      _webgpu_arrived(request, 1, kind, webgpu.keep(text));
    });
  },

  webgpu_create_buffer__deps: ['$webgpu'],
  webgpu_create_buffer: function (label, labelSize, usage, size, withoutMemory) {
    const device = webgpu.device();
    const descriptor = { label: webgpu.text(label, labelSize), usage, size };
    if (!withoutMemory) return webgpu.add({ gpu: device.createBuffer(descriptor), users: 1 });
    // A buffer that no command may use, as one without memory is.
    device.pushErrorScope('validation');
    descriptor.usage = 0;
    const buffer = device.createBuffer(descriptor);
    device.popErrorScope().catch(() => {});
    webgpu.noMemory = true;
    return webgpu.add({ gpu: buffer, users: 1 });
  },

  webgpu_create_shader_module__deps: ['$webgpu'],
  webgpu_create_shader_module: function (label, labelSize, code, codeSize) {
    return webgpu.add(
      webgpu.device().createShaderModule({
        label: webgpu.text(label, labelSize),
        code: webgpu.text(code, codeSize),
      }),
    );
  },

  webgpu_compilation_info__deps: ['$webgpu'],
  webgpu_compilation_info: function (request, module) {
    const kinds = { error: 1, warning: 2, info: 3 };
    webgpu.answer(request, webgpu.objects[module].getCompilationInfo(), (info) => {
      for (const each of info.messages) {
        const text = webgpu.keep(each.message);
        _webgpu_message(request, kinds[each.type], each.lineNum, each.linePos, text);
      }
      _webgpu_arrived(request, 1, 0, 0);
    });
  },

  webgpu_create_bind_group_layout__deps: ['$webgpu'],
  webgpu_create_bind_group_layout: function (types, count) {
    const names = { 2: 'uniform', 3: 'storage', 4: 'read-only-storage' };
    const entries = [];
    for (let binding = 0; binding < count; ++binding)
      entries.push({ binding, visibility: 4, buffer: { type: names[HEAPU32[(types >>> 2) + binding]] } });
    return webgpu.add(webgpu.device().createBindGroupLayout({ entries }));
  },

  webgpu_create_pipeline_layout__deps: ['$webgpu'],
  webgpu_create_pipeline_layout: function (groupLayout) {
    const bindGroupLayouts = [webgpu.objects[groupLayout]];
    return webgpu.add(webgpu.device().createPipelineLayout({ bindGroupLayouts }));
  },

  webgpu_pipeline_constant__deps: ['$webgpu'],
  webgpu_pipeline_constant: function (key, keySize, value) {
    webgpu.constants[webgpu.text(key, keySize)] = value;
  },

  webgpu_create_pipeline__deps: ['$webgpu'],
  webgpu_create_pipeline: function (request, label, labelSize, layout, module, entry, entrySize) {
    const constants = webgpu.constants;
    webgpu.constants = {};
    const made = webgpu.device().createComputePipelineAsync({
      label: webgpu.text(label, labelSize),
      layout: webgpu.objects[layout],
      compute: {
        module: webgpu.objects[module],
        entryPoint: webgpu.text(entry, entrySize),
        constants,
      },
    });
    webgpu.answer(request, made, (pipeline) => {
      const number = webgpu.add(pipeline);
      if (!_webgpu_arrived(request, 1, number, 0)) webgpu.remove(number);
    });
  },

  webgpu_create_bind_group__deps: ['$webgpu'],
  webgpu_create_bind_group: function (layout, values, count) {
    const entries = [];
    const buffers = [];
    for (let binding = 0; binding < count; ++binding) {
      const at = (values >>> 3) + 3 * binding;
      const buffer = webgpu.objects[HEAPF64[at]];
      ++buffer.users;
      buffers.push(buffer);
      entries.push({
        binding,
        resource: { buffer: buffer.gpu, offset: HEAPF64[at + 1], size: HEAPF64[at + 2] },
      });
    }
    const group = webgpu.device().createBindGroup({ layout: webgpu.objects[layout], entries });
    return webgpu.add({ group, buffers });
  },

  webgpu_create_query_set__deps: ['$webgpu'],
  webgpu_create_query_set: function (count) {
    return webgpu.add(webgpu.device().createQuerySet({ type: 'timestamp', count }));
  },

  webgpu_release__deps: ['$webgpu'],
  webgpu_release: function (number) {
    if (!number) return;
    const object = webgpu.remove(number);
    if (object.users) webgpu.drop(object);
    else if (object.buffers) object.buffers.forEach(webgpu.drop);
    else if (object.recording) webgpu.recorded();
  },

  webgpu_submit__deps: ['$webgpu'],
  webgpu_submit: function (commands) {
    webgpu.device().queue.submit(commands ? [webgpu.objects[commands].recording] : []);
  },

  webgpu_write__deps: ['$webgpu'],
  webgpu_write: function (buffer, offset, bytes, size) {
    webgpu.device().queue.writeBuffer(webgpu.objects[buffer].gpu, offset, HEAPU8, bytes >>> 0, size);
  },

  webgpu_work_done__deps: ['$webgpu'],
  webgpu_work_done: function (request) {
    webgpu.answer(request, webgpu.device().queue.onSubmittedWorkDone(), () => {
      _webgpu_arrived(request, 1, 0, 0);
    });
  },

  webgpu_map__deps: ['$webgpu'],
  webgpu_map: function (request, buffer, size) {
    webgpu.answer(request, webgpu.objects[buffer].gpu.mapAsync(1, 0, size), () => {
      _webgpu_arrived(request, 1, 0, 0);
    });
  },

  webgpu_copy_mapped__deps: ['$webgpu'],
  webgpu_copy_mapped: function (buffer, to, size) {
    try {
      HEAPU8.set(new Uint8Array(webgpu.objects[buffer].gpu.getMappedRange(0, size)), to >>> 0);
      return 1;
    } catch (error) {
      return 0;
    }
  },

  webgpu_unmap__deps: ['$webgpu'],
  webgpu_unmap: function (buffer) {
    webgpu.objects[buffer].gpu.unmap();
  },

  webgpu_create_encoder__deps: ['$webgpu'],
  webgpu_create_encoder: function () {
    ++webgpu.recording;
    return webgpu.add({ recording: webgpu.device().createCommandEncoder() });
  },

  webgpu_begin_pass__deps: ['$webgpu'],
  webgpu_begin_pass: function (encoder, querySet, begin, end) {
    const timestampWrites = querySet
      ? {
          querySet: webgpu.objects[querySet],
          beginningOfPassWriteIndex: begin,
          endOfPassWriteIndex: end,
        }
      : undefined;
    return webgpu.add(webgpu.objects[encoder].recording.beginComputePass({ timestampWrites }));
  },

  webgpu_copy__deps: ['$webgpu'],
  webgpu_copy: function (encoder, from, fromOffset, to, toOffset, size) {
    const objects = webgpu.objects;
    objects[encoder].recording.copyBufferToBuffer(objects[from].gpu, fromOffset, objects[to].gpu, toOffset, size);
  },

  webgpu_clear__deps: ['$webgpu'],
  webgpu_clear: function (encoder, buffer, offset, size) {
    webgpu.objects[encoder].recording.clearBuffer(webgpu.objects[buffer].gpu, offset, size);
  },

  webgpu_resolve__deps: ['$webgpu'],
  webgpu_resolve: function (encoder, querySet, first, count, to, offset) {
    const objects = webgpu.objects;
    objects[encoder].recording.resolveQuerySet(objects[querySet], first, count, objects[to].gpu, offset);
  },

  webgpu_finish__deps: ['$webgpu'],
  webgpu_finish: function (encoder) {
    ++webgpu.recording;
    return webgpu.add({ recording: webgpu.objects[encoder].recording.finish() });
  },

  webgpu_set_pipeline__deps: ['$webgpu'],
  webgpu_set_pipeline: function (pass, pipeline) {
    webgpu.objects[pass].setPipeline(webgpu.objects[pipeline]);
  },

  webgpu_set_bind_group__deps: ['$webgpu'],
  webgpu_set_bind_group: function (pass, group) {
    webgpu.objects[pass].setBindGroup(0, webgpu.objects[group].group);
  },

  webgpu_dispatch__deps: ['$webgpu'],
  webgpu_dispatch: function (pass, x, y, z) {
    webgpu.objects[pass].dispatchWorkgroups(x, y, z);
  },

  webgpu_end_pass__deps: ['$webgpu'],
  webgpu_end_pass: function (pass) {
    webgpu.objects[pass].end();
  },
});
