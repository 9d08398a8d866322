// 10 x 1 workgroups
// rows 1 x 40000: mul_reduce_sum_sqrt (parts)
@group(0) @binding(0) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> outputs: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> scratch: array<vec4<u32>>;

var<workgroup> joined_f0: array<f32, 16>;
var<workgroup> shared_f0: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let row = group / 10u;
  let part = group % 10u;
  var sum_0 = vec4<f32>(0.0f);
  for (var c = part * 1024u + thread; c < min(10000u, (part + 1u) * 1024u); c += 256u) {
    let x = row * 10000u + c;
    let v_1 = inputs[x];
    let v_2 = v_1 * v_1;
    sum_0 = sum_0 + v_2;
  }
  shared_f0[thread] = ((sum_0.x + sum_0.y) + (sum_0.z + sum_0.w));
  workgroupBarrier();
  let first_3 = 0u / 16u;
  if (thread < 16u) {
    var part = shared_f0[thread];
    for (var j = 16u; j < 256u; j += 16u) {
      part = part + shared_f0[thread + j];
    }
    joined_f0[first_3 + thread] = part;
  }
  workgroupBarrier();
  var r_4 = joined_f0[first_3];
  for (var j = 1u; j < 16u; j++) {
    r_4 = r_4 + joined_f0[first_3 + j];
  }
  if (thread == 0u) {
    scratch[(0u + group) >> 2u][(0u + group) & 3u] = bitcast<u32>(r_4);
  }
}

// 1 x 1 workgroups
// rows 1 x 40000: mul_reduce_sum_sqrt (whole)
@group(0) @binding(0) var<storage, read> inputs: array<f32>;
@group(0) @binding(1) var<storage, read_write> outputs: array<f32>;
@group(0) @binding(2) var<storage, read> scratch: array<u32>;

var<workgroup> joined_f0: array<f32, 16>;
var<workgroup> shared_f0: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let row = group;
  var sum_0 = 0.0f;
  for (var p = thread; p < 10u; p += 256u) {
    sum_0 = sum_0 + bitcast<f32>(scratch[0u + row * 10u + p]);
  }
  shared_f0[thread] = sum_0;
  workgroupBarrier();
  let first_1 = 0u / 16u;
  if (thread < 16u) {
    var part = shared_f0[thread];
    for (var j = 16u; j < 256u; j += 16u) {
      part = part + shared_f0[thread + j];
    }
    joined_f0[first_1 + thread] = part;
  }
  workgroupBarrier();
  var r_2 = joined_f0[first_1];
  for (var j = 1u; j < 16u; j++) {
    r_2 = r_2 + joined_f0[first_1 + j];
  }
  let v_3 = sqrt(r_2);
  if (thread == 0u) {
    outputs[row] = v_3;
  }
}

