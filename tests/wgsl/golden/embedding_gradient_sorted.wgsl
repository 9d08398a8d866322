// 32 x 1 workgroups
// segment_sum 8 x 300: segment_sum (sort)
@group(0) @binding(0) var<storage, read> inputs: array<i32>;
@group(0) @binding(1) var<storage, read_write> scratch: array<i32>;
@group(0) @binding(2) var<storage, read_write> faults: array<atomic<i32>>;

var<workgroup> own: array<u32, 256>;
var<workgroup> smaller: array<u32, 256>;
fn note_fault(node: i32, id: i32) {
  if (atomicCompareExchangeWeak(&faults[0], 0, node).exchanged) { atomicStore(&faults[1], id); }
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let first = i32(group * 64u);
  let last = min(first + 64, 2000);
  let begin = min(300u, thread * 2u);
  let end = min(300u, begin + 2u);
  var below = 0u;
  var inside = 0u;
  for (var p = begin; p < end; p++) {
    let i_0 = p + 2432u;
    let id = inputs[i_0];
    if (group == 0u && (id < 0 || id >= 2000)) { note_fault(3, id); }
    below += u32(id < first);
    inside += u32(id >= first && id < last);
  }
  smaller[thread] = below;
  own[thread] = inside;
  workgroupBarrier();
  var start = 0u;
  var at = 0u;
  var count = 0u;
  for (var t = 0u; t < 256u; t++) {
    start += smaller[t];
    at += select(0u, own[t], t < thread);
    count += own[t];
  }
  at += start;
  for (var p = begin; p < end; p++) {
    let i_1 = p + 2432u;
    let id = inputs[i_1];
    if (id >= first && id < last) {
      scratch[at + 2001u] = i32(p * 64u + u32(id - first));
      at++;
    }
  }
  storageBarrier();
  workgroupBarrier();
  var mine = 0u;
  for (var i = start; i < select(start, start + count, first + i32(thread) < last); i++) {
    let entry = u32(scratch[i + 2001u]);
    if (entry % 64u == thread) {
      mine++;
    }
  }
  own[thread] = mine;
  workgroupBarrier();
  var to = start;
  for (var t = 0u; t < min(thread, 64u); t++) { to += own[t]; }
  if (first + i32(thread) < last) {
    scratch[u32(first) + thread] = i32(to);
  }
  if (thread == 0u && last == 2000) {
    scratch[2000u] = i32(start + count);
  }
  for (var i = start; i < select(start, start + count, first + i32(thread) < last); i++) {
    let entry = u32(scratch[i + 2001u]);
    if (entry % 64u == thread) {
      scratch[to + 2301u] = i32(entry / 64u);
      to++;
    }
  }
}

// 63 x 1 workgroups
// segment_sum 8 x 300: segment_sum (sum)
@group(0) @binding(0) var<storage, read> inputs: array<f32>;
@group(0) @binding(1) var<storage, read_write> outputs: array<f32>;
@group(0) @binding(2) var<storage, read> scratch: array<i32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let x = group * 256u + thread;
  if (x >= 16000u) { return; }
  let v = x / 8u;
  let d = x % 8u;
  let end = u32(scratch[v + 1u]);
  var i = u32(scratch[v]);
  var sum = 0.0f;
  for (; i + 7u < end; i += 8u) {
    let p_0 = u32(scratch[i + 2301u]);
    let x_1 = p_0 * 8u + d;
    let value_2 = inputs[x_1];
    let p_3 = u32(scratch[i + 2302u]);
    let x_4 = p_3 * 8u + d;
    let value_5 = inputs[x_4];
    let p_6 = u32(scratch[i + 2303u]);
    let x_7 = p_6 * 8u + d;
    let value_8 = inputs[x_7];
    let p_9 = u32(scratch[i + 2304u]);
    let x_10 = p_9 * 8u + d;
    let value_11 = inputs[x_10];
    let p_12 = u32(scratch[i + 2305u]);
    let x_13 = p_12 * 8u + d;
    let value_14 = inputs[x_13];
    let p_15 = u32(scratch[i + 2306u]);
    let x_16 = p_15 * 8u + d;
    let value_17 = inputs[x_16];
    let p_18 = u32(scratch[i + 2307u]);
    let x_19 = p_18 * 8u + d;
    let value_20 = inputs[x_19];
    let p_21 = u32(scratch[i + 2308u]);
    let x_22 = p_21 * 8u + d;
    let value_23 = inputs[x_22];
    sum += value_2;
    sum += value_5;
    sum += value_8;
    sum += value_11;
    sum += value_14;
    sum += value_17;
    sum += value_20;
    sum += value_23;
  }
  for (; i < end; i++) {
    let p_24 = u32(scratch[i + 2301u]);
    let x_25 = p_24 * 8u + d;
    let value_26 = inputs[x_25];
    sum += value_26;
  }
  outputs[x] = sum;
}

