// 10 x 1 workgroups
// rows 40 x 64: reduce_max_sub_exp_reduce_sum_div
@group(0) @binding(0) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> outputs: array<vec4<f32>>;

var<workgroup> shared_f0: array<f32, 64>;
var<workgroup> shared_f1: array<f32, 64>;
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn maximum(a: f32, b: f32) -> f32 { if (is_nan(a)) { return a; } if (is_nan(b)) { return b; } return max(a, b); }
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let lane = thread % 16u;
  let place = group * 4u + thread / 16u;
  let row = min(place, 39u);
  let first_0 = thread - lane;
  let x = row * 16u + lane;
  let v_1 = inputs[x];
  let v_2 = v_1;
  shared_f0[thread] = (maximum((maximum(v_2.x, v_2.y)), (maximum(v_2.z, v_2.w))));
  workgroupBarrier();
  var r_3 = shared_f0[first_0];
  for (var j = 1u; j < 16u; j++) {
    r_3 = maximum(r_3, shared_f0[first_0 + j]);
  }
  let v_4 = vec4<f32>(r_3);
  let v_5 = v_1 - v_4;
  let v_6 = exp(v_5);
  let v_7 = v_6;
  shared_f1[thread] = ((v_7.x + v_7.y) + (v_7.z + v_7.w));
  workgroupBarrier();
  var r_8 = shared_f1[first_0];
  for (var j = 1u; j < 16u; j++) {
    r_8 = r_8 + shared_f1[first_0 + j];
  }
  let v_9 = vec4<f32>(r_8);
  let v_10 = v_6 / v_9;
  outputs[x] = v_10;
}

