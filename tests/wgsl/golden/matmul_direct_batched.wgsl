// 2 x 1 workgroups
// matmul 6 x [8, 4]: matmul (direct)
@group(0) @binding(0) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> outputs: array<vec4<f32>>;

fn left(batch: u32, row: u32, column: u32) -> f32 {
  let i_0 = batch * 32u + row * 4u + column;
  let v_1 = inputs[(i_0) >> 2u][(i_0) & 3u];
  return v_1;
}
fn left_4(batch: u32, row: u32, column: u32) -> vec4<f32> {
  let i_2 = batch * 32u + row * 4u + column;
  return inputs[(i_2) >> 2u];
}
fn right_0(batch: u32, row: u32, column: u32) -> f32 {
  let i_3 = batch * 32u + row + column * 4u + 192u;
  let v_4 = inputs[(i_3) >> 2u][(i_3) & 3u];
  return v_4;
}
fn right_0_4(batch: u32, row: u32, column: u32) -> vec4<f32> {
  let i_5 = batch * 32u + row + column * 4u + 192u;
  return inputs[(i_5) >> 2u];
}
fn finish_0(x: u32, product: vec4<f32>) {
  outputs[x] = product;
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let thread_x = group * 64u + thread;
  if (thread_x >= 0u && thread_x < 96u) {
    let x = thread_x - 0u;
    let column = 4u * (x % 2u);
    let row = (x / 2u) % 8u;
    let batch = x / 16u;
    var sum = vec4<f32>(0.0f);
    sum = fma(vec4<f32>(left(batch, row, 0u)), vec4<f32>(right_0(batch, 0u, column), right_0(batch, 0u, column + 1u), right_0(batch, 0u, column + 2u), right_0(batch, 0u, column + 3u)), sum);
    sum = fma(vec4<f32>(left(batch, row, 1u)), vec4<f32>(right_0(batch, 1u, column), right_0(batch, 1u, column + 1u), right_0(batch, 1u, column + 2u), right_0(batch, 1u, column + 3u)), sum);
    sum = fma(vec4<f32>(left(batch, row, 2u)), vec4<f32>(right_0(batch, 2u, column), right_0(batch, 2u, column + 1u), right_0(batch, 2u, column + 2u), right_0(batch, 2u, column + 3u)), sum);
    sum = fma(vec4<f32>(left(batch, row, 3u)), vec4<f32>(right_0(batch, 3u, column), right_0(batch, 3u, column + 1u), right_0(batch, 3u, column + 2u), right_0(batch, 3u, column + 3u)), sum);
    finish_0(x, sum);
  }
}

