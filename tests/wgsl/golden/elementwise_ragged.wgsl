// 1 x 1 workgroups
// rows 1 x 15: exp
@group(0) @binding(0) var<storage, read> inputs: array<f32>;
@group(0) @binding(1) var<storage, read_write> outputs: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let x = group * 64u + thread;
  if (x >= 15u) { return; }
  let q_0 = x / 3u;
  let p_1 = x % 3u;
  let i_2 = q_0 + p_1 * 5u;
  let v_3 = inputs[i_2];
  let v_4 = exp(v_3);
  outputs[x] = v_4;
}

