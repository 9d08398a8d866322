// 2 x 1 workgroups
// columns 12 x 100: reduce_sum
@group(0) @binding(0) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> outputs: array<vec4<f32>>;

var<workgroup> shared0: array<vec4<f32>, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let lane = thread / 2u;
  let part = group / 2u;
  let place = (group % 2u) * 2u + thread % 2u;
  let at = min(place, 2u);
  var sum_0 = vec4<f32>(0.0f);
  let end = min(100u, (part + 1u) * 100u);
  var row = part * 100u + lane;
  for (; row + 384u < end; row += 512u) {
    let x_1 = (row + 0u) * 3u + at;
    let v_2 = inputs[x_1];
    let v_3 = v_2;
    let x_4 = (row + 128u) * 3u + at;
    let v_5 = inputs[x_4];
    let v_6 = v_5;
    let x_7 = (row + 256u) * 3u + at;
    let v_8 = inputs[x_7];
    let v_9 = v_8;
    let x_10 = (row + 384u) * 3u + at;
    let v_11 = inputs[x_10];
    let v_12 = v_11;
    sum_0 = sum_0 + v_3;
    sum_0 = sum_0 + v_6;
    sum_0 = sum_0 + v_9;
    sum_0 = sum_0 + v_12;
  }
  for (; row < end; row += 128u) {
    let x_13 = row * 3u + at;
    let v_14 = inputs[x_13];
    sum_0 = sum_0 + v_14;
  }
  shared0[thread] = sum_0;
  workgroupBarrier();
  if (lane < 16u) {
    for (var j = 32u; thread + j < 256u; j += 32u) {
      sum_0 = sum_0 + shared0[thread + j];
    }
    shared0[thread] = sum_0;
  }
  workgroupBarrier();
  if (lane == 0u && place < 3u) {
    for (var j = 2u; thread + j < 32u; j += 2u) {
      sum_0 = sum_0 + shared0[thread + j];
    }
    for (var q = 0u; q < 4u; q++) {
      let column = 4u * at + q;
      outputs[(column) >> 2u][(column) & 3u] = sum_0[q];
    }
  }
}

