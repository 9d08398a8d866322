// 1 x 1 workgroups
// rows 1 x 40: embedding
@group(0) @binding(0) var<storage, read> parameters: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> inputs: array<vec4<i32>>;
@group(0) @binding(2) var<storage, read_write> outputs: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> faults: array<atomic<i32>>;

fn note_fault(node: i32, id: i32) {
  if (atomicCompareExchangeWeak(&faults[0], 0, node).exchanged) { atomicStore(&faults[1], id); }
}
fn checked(id: i32, extent: i32, node: i32) -> i32 {
  if (id >= 0 && id < extent) { return id; }
  note_fault(node, id);
  return 0;
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let x = group * 64u + thread;
  if (x >= 10u) { return; }
  let q_0 = x / 2u;
  let v_1 = vec4<i32>(inputs[(q_0) >> 2u][(q_0) & 3u]);
  let v_2 = vec4<i32>(checked(v_1.x, 10, 3), checked(v_1.y, 10, 3), checked(v_1.z, 10, 3), checked(v_1.w, 10, 3));
  let p_3 = x % 2u;
  let i_4 = p_3 + u32(v_2.x) * 2u;
  let v_5 = parameters[i_4];
  outputs[x] = v_5;
}

