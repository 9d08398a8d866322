// 10 x 1 workgroups
// segment_sum 8 x 5: segment_sum
@group(0) @binding(0) var<storage, read> inputs: array<u32>;
@group(0) @binding(1) var<storage, read_write> outputs: array<f32>;
@group(0) @binding(2) var<storage, read_write> faults: array<atomic<i32>>;

var<workgroup> sums: array<f32, 256>;
fn note_fault(node: i32, id: i32) {
  if (atomicCompareExchangeWeak(&faults[0], 0, node).exchanged) { atomicStore(&faults[1], id); }
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let d = (group % 1u) * 32u + thread % 32u;
  let lane = thread / 32u;
  let v = i32((group / 1u) % 10u);
  let part = group / 10u;
  let column = min(d, 7u);
  var sum = 0.0f;
  let end = min(5u, (part + 1u) * 5u);
  var p = part * 5u + lane;
  for (; p + 56u < end; p += 64u) {
    let p_0 = p + 0u;
    let i_1 = p_0 + 64u;
    let id_2 = bitcast<i32>(inputs[i_1]);
    let p_3 = p + 8u;
    let i_4 = p_3 + 64u;
    let id_5 = bitcast<i32>(inputs[i_4]);
    let p_6 = p + 16u;
    let i_7 = p_6 + 64u;
    let id_8 = bitcast<i32>(inputs[i_7]);
    let p_9 = p + 24u;
    let i_10 = p_9 + 64u;
    let id_11 = bitcast<i32>(inputs[i_10]);
    let p_12 = p + 32u;
    let i_13 = p_12 + 64u;
    let id_14 = bitcast<i32>(inputs[i_13]);
    let p_15 = p + 40u;
    let i_16 = p_15 + 64u;
    let id_17 = bitcast<i32>(inputs[i_16]);
    let p_18 = p + 48u;
    let i_19 = p_18 + 64u;
    let id_20 = bitcast<i32>(inputs[i_19]);
    let p_21 = p + 56u;
    let i_22 = p_21 + 64u;
    let id_23 = bitcast<i32>(inputs[i_22]);
    if (v == 0 && d == 0u && (id_2 < 0 || id_2 >= 10)) { note_fault(3, id_2); }
    if (id_2 == v) {
      let x = (p + 0u) * 8u + column;
      sum += bitcast<f32>(inputs[x]);
    }
    if (v == 0 && d == 0u && (id_5 < 0 || id_5 >= 10)) { note_fault(3, id_5); }
    if (id_5 == v) {
      let x = (p + 8u) * 8u + column;
      sum += bitcast<f32>(inputs[x]);
    }
    if (v == 0 && d == 0u && (id_8 < 0 || id_8 >= 10)) { note_fault(3, id_8); }
    if (id_8 == v) {
      let x = (p + 16u) * 8u + column;
      sum += bitcast<f32>(inputs[x]);
    }
    if (v == 0 && d == 0u && (id_11 < 0 || id_11 >= 10)) { note_fault(3, id_11); }
    if (id_11 == v) {
      let x = (p + 24u) * 8u + column;
      sum += bitcast<f32>(inputs[x]);
    }
    if (v == 0 && d == 0u && (id_14 < 0 || id_14 >= 10)) { note_fault(3, id_14); }
    if (id_14 == v) {
      let x = (p + 32u) * 8u + column;
      sum += bitcast<f32>(inputs[x]);
    }
    if (v == 0 && d == 0u && (id_17 < 0 || id_17 >= 10)) { note_fault(3, id_17); }
    if (id_17 == v) {
      let x = (p + 40u) * 8u + column;
      sum += bitcast<f32>(inputs[x]);
    }
    if (v == 0 && d == 0u && (id_20 < 0 || id_20 >= 10)) { note_fault(3, id_20); }
    if (id_20 == v) {
      let x = (p + 48u) * 8u + column;
      sum += bitcast<f32>(inputs[x]);
    }
    if (v == 0 && d == 0u && (id_23 < 0 || id_23 >= 10)) { note_fault(3, id_23); }
    if (id_23 == v) {
      let x = (p + 56u) * 8u + column;
      sum += bitcast<f32>(inputs[x]);
    }
  }
  for (; p < end; p += 8u) {
    let i_24 = p + 64u;
    let id_25 = bitcast<i32>(inputs[i_24]);
    if (v == 0 && d == 0u && (id_25 < 0 || id_25 >= 10)) { note_fault(3, id_25); }
    if (id_25 == v) {
      let x = (p) * 8u + column;
      sum += bitcast<f32>(inputs[x]);
    }
  }
  sums[thread] = sum;
  workgroupBarrier();
  if (lane == 0u && d < 8u) {
    for (var j = 32u; j < 256u; j += 32u) { sum += sums[thread + j]; }
    outputs[u32(v) * 8u + d + 0u] = sum;
  }
}

