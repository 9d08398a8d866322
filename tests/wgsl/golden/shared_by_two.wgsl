// 5 x 1 workgroups
// rows 64 x 16: reduce_max_sub_exp_reduce_sum_div
// rows 16 x 64: exp_reduce_max
@group(0) @binding(0) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> outputs: array<vec4<f32>>;

var<workgroup> shared_f0: array<f32, 64>;
fn bits_to_f32(bits: u32) -> f32 { var b = bits; return bitcast<f32>(b); }
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn maximum(a: f32, b: f32) -> f32 { if (is_nan(a)) { return a; } if (is_nan(b)) { return b; } return max(a, b); }
fn maximum_4(a0: vec4<f32>, a1: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(maximum(a0.x, a1.x), maximum(a0.y, a1.y), maximum(a0.z, a1.z), maximum(a0.w, a1.w));
}
fn piece_0(group: u32, thread: u32) {
  let lane = thread % 1u;
  let place = group * 64u + thread / 1u;
  let row = min(place, 63u);
  let first_0 = thread - lane;
  var sum_1 = vec4<f32>(bits_to_f32(0xff800000u));
  for (var c = lane; c < 4u; c += 1u) {
    let x = row * 4u + c;
    let v_2 = inputs[x];
    sum_1 = maximum_4(sum_1, v_2);
  }
  var sum_3 = vec4<f32>(0.0f);
  for (var c = lane; c < 4u; c += 1u) {
    let x = row * 4u + c;
    let v_4 = inputs[x];
    let v_5 = vec4<f32>((maximum((maximum(sum_1.x, sum_1.y)), (maximum(sum_1.z, sum_1.w)))));
    let v_6 = v_4 - v_5;
    let v_7 = exp(v_6);
    sum_3 = sum_3 + v_7;
  }
  workgroupBarrier();
  for (var c = lane; c < 4u; c += 1u) {
    let x = row * 4u + c;
    let v_8 = inputs[x];
    let v_9 = vec4<f32>((maximum((maximum(sum_1.x, sum_1.y)), (maximum(sum_1.z, sum_1.w)))));
    let v_10 = v_8 - v_9;
    let v_11 = exp(v_10);
    let v_12 = vec4<f32>(((sum_3.x + sum_3.y) + (sum_3.z + sum_3.w)));
    let v_13 = v_11 / v_12;
    outputs[x] = v_13;
  }
}
fn piece_1(group: u32, thread: u32) {
  let lane = thread % 16u;
  let place = group * 4u + thread / 16u;
  let row = min(place, 15u);
  let first_0 = thread - lane;
  let x = row * 16u + lane;
  let e_1 = 4u * x + 0u;
  let q_2 = e_1 / 64u;
  let p_3 = e_1 % 64u;
  let i_4 = q_2 + p_3 * 16u;
  let v_5 = inputs[(i_4) >> 2u][(i_4) & 3u];
  let e_6 = 4u * x + 1u;
  let q_7 = e_6 / 64u;
  let p_8 = e_6 % 64u;
  let i_9 = q_7 + p_8 * 16u;
  let v_10 = inputs[(i_9) >> 2u][(i_9) & 3u];
  let e_11 = 4u * x + 2u;
  let q_12 = e_11 / 64u;
  let p_13 = e_11 % 64u;
  let i_14 = q_12 + p_13 * 16u;
  let v_15 = inputs[(i_14) >> 2u][(i_14) & 3u];
  let e_16 = 4u * x + 3u;
  let q_17 = e_16 / 64u;
  let p_18 = e_16 % 64u;
  let i_19 = q_17 + p_18 * 16u;
  let v_20 = inputs[(i_19) >> 2u][(i_19) & 3u];
  let v_21 = vec4<f32>(v_5, v_10, v_15, v_20);
  let v_22 = exp(v_21);
  let v_23 = v_22;
  shared_f0[thread] = (maximum((maximum(v_23.x, v_23.y)), (maximum(v_23.z, v_23.w))));
  workgroupBarrier();
  var r_24 = shared_f0[first_0];
  for (var j = 1u; j < 16u; j++) {
    r_24 = maximum(r_24, shared_f0[first_0 + j]);
  }
  if (lane == 0u) {
    outputs[(row + 1024u) >> 2u][(row + 1024u) & 3u] = r_24;
  }
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  if (group < 1u) {
    piece_0(group, thread);
  } else {
    piece_1(group - 1u, thread);
  }
}

