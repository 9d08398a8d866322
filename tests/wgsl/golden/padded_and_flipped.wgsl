// 1 x 1 workgroups
// rows 1 x 9: neg
@group(0) @binding(0) var<storage, read> inputs: array<f32>;
@group(0) @binding(1) var<storage, read_write> outputs: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let x = group * 64u + thread;
  if (x >= 9u) { return; }
  let s_0 = i32(x) * -1 + 7;
  let g_1 = s_0;
  let i_2 = select(0u, u32(g_1), (g_1 >= 0 && g_1 < 6));
  let v_3 = select((-1.0f), inputs[i_2], (g_1 >= 0 && g_1 < 6));
  let v_4 = -v_3;
  outputs[x] = v_4;
}

