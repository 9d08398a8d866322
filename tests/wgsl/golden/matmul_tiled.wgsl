// 4 x 1 workgroups
// matmul 1 x [64, 40]: matmul_relu
@group(0) @binding(0) var<storage, read> parameters: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> outputs: array<vec4<f32>>;

var<workgroup> tile_a: array<vec4<f32>, 512>;
var<workgroup> tile_b: array<vec4<f32>, 512>;
fn left(batch: u32, row: u32, column: u32) -> f32 {
  let i_0 = row * 40u + column;
  let v_1 = inputs[(i_0) >> 2u][(i_0) & 3u];
  return v_1;
}
fn left_4(batch: u32, row: u32, column: u32) -> vec4<f32> {
  let i_2 = row * 40u + column;
  return inputs[(i_2) >> 2u];
}
fn right_0(batch: u32, row: u32, column: u32) -> f32 {
  let i_3 = row * 48u + column;
  let v_4 = parameters[(i_3) >> 2u][(i_3) & 3u];
  return v_4;
}
fn right_0_4(batch: u32, row: u32, column: u32) -> vec4<f32> {
  let i_5 = row * 48u + column;
  return parameters[(i_5) >> 2u];
}
fn finish_0(x: u32, product: vec4<f32>) {
  let v_6 = product <= vec4<f32>(0.0f);
  let v_7 = select(product, vec4<f32>(0.0f), v_6);
  outputs[x] = v_7;
}
fn part_0(batch: u32, m0: u32, n0: u32, split: u32, thread: u32) {
  let slice = thread / 64u;
  let tx = thread % 8u;
  let ty = (thread % 64u) / 8u;
  var c0_0 = vec4<f32>();
  var c1_0 = vec4<f32>();
  var c2_0 = vec4<f32>();
  var c3_0 = vec4<f32>();
  var next_a_0 = vec4<f32>();
  var next_a_1 = vec4<f32>();
  var next_a_2 = vec4<f32>();
  var next_a_3 = vec4<f32>();
  var next_b_0 = vec4<f32>();
  var next_b_1 = vec4<f32>();
  let begin = split * 64u;
  let end = 40u;
  if (thread < 128u) {
    let x_8 = m0 + 4u * (thread % 8u);
    let k_9 = begin + 4u * (thread / 8u);
    if (k_9 < 40u) { next_a_0 = left_4(batch, x_8 + 0u, k_9); } else { next_a_0 = vec4<f32>(); }
    if (k_9 < 40u) { next_a_1 = left_4(batch, x_8 + 1u, k_9); } else { next_a_1 = vec4<f32>(); }
    if (k_9 < 40u) { next_a_2 = left_4(batch, x_8 + 2u, k_9); } else { next_a_2 = vec4<f32>(); }
    if (k_9 < 40u) { next_a_3 = left_4(batch, x_8 + 3u, k_9); } else { next_a_3 = vec4<f32>(); }
  }
  {
    let x_10 = n0 + 4u * (thread % 8u);
    let k_11 = begin + thread / 8u;
    if (x_10 < 48u && k_11 < 40u) { next_b_0 = right_0_4(batch, k_11, x_10); } else { next_b_0 = vec4<f32>(); }
  }
  {
    let x_12 = n0 + 4u * ((thread + 256u) % 8u);
    let k_13 = begin + (thread + 256u) / 8u;
    if (x_12 < 48u && k_13 < 40u) { next_b_1 = right_0_4(batch, k_13, x_12); } else { next_b_1 = vec4<f32>(); }
  }
  for (var k0 = begin; k0 < end; k0 += 64u) {
    if (thread < 128u) {
      tile_a[(4u * (thread / 8u) + 0u) * 8u + thread % 8u] = vec4<f32>(next_a_0.x, next_a_1.x, next_a_2.x, next_a_3.x);
      tile_a[(4u * (thread / 8u) + 1u) * 8u + thread % 8u] = vec4<f32>(next_a_0.y, next_a_1.y, next_a_2.y, next_a_3.y);
      tile_a[(4u * (thread / 8u) + 2u) * 8u + thread % 8u] = vec4<f32>(next_a_0.z, next_a_1.z, next_a_2.z, next_a_3.z);
      tile_a[(4u * (thread / 8u) + 3u) * 8u + thread % 8u] = vec4<f32>(next_a_0.w, next_a_1.w, next_a_2.w, next_a_3.w);
    }
    {
      tile_b[thread] = next_b_0;
    }
    {
      tile_b[(thread + 256u)] = next_b_1;
    }
    workgroupBarrier();
    let next = k0 + 64u;
    if (next < end) {
      if (thread < 128u) {
        let x_14 = m0 + 4u * (thread % 8u);
        let k_15 = next + 4u * (thread / 8u);
        if (k_15 < 40u) { next_a_0 = left_4(batch, x_14 + 0u, k_15); } else { next_a_0 = vec4<f32>(); }
        if (k_15 < 40u) { next_a_1 = left_4(batch, x_14 + 1u, k_15); } else { next_a_1 = vec4<f32>(); }
        if (k_15 < 40u) { next_a_2 = left_4(batch, x_14 + 2u, k_15); } else { next_a_2 = vec4<f32>(); }
        if (k_15 < 40u) { next_a_3 = left_4(batch, x_14 + 3u, k_15); } else { next_a_3 = vec4<f32>(); }
      }
      {
        let x_16 = n0 + 4u * (thread % 8u);
        let k_17 = next + thread / 8u;
        if (x_16 < 48u && k_17 < 40u) { next_b_0 = right_0_4(batch, k_17, x_16); } else { next_b_0 = vec4<f32>(); }
      }
      {
        let x_18 = n0 + 4u * ((thread + 256u) % 8u);
        let k_19 = next + (thread + 256u) / 8u;
        if (x_18 < 48u && k_19 < 40u) { next_b_1 = right_0_4(batch, k_19, x_18); } else { next_b_1 = vec4<f32>(); }
      }
    }
    for (var k = slice * 16u; k < (slice + 1u) * 16u; k += 4u) {
      let a0_0 = tile_a[(k + 0u) * 8u + 0u + ty];
      let b0_0 = tile_b[(k + 0u) * 8u + 0u + tx];
      let a0_1 = tile_a[(k + 1u) * 8u + 0u + ty];
      let b0_1 = tile_b[(k + 1u) * 8u + 0u + tx];
      let a0_2 = tile_a[(k + 2u) * 8u + 0u + ty];
      let b0_2 = tile_b[(k + 2u) * 8u + 0u + tx];
      let a0_3 = tile_a[(k + 3u) * 8u + 0u + ty];
      let b0_3 = tile_b[(k + 3u) * 8u + 0u + tx];
      c0_0 = fma(vec4<f32>(a0_0.x), b0_0, c0_0);
      c1_0 = fma(vec4<f32>(a0_0.y), b0_0, c1_0);
      c2_0 = fma(vec4<f32>(a0_0.z), b0_0, c2_0);
      c3_0 = fma(vec4<f32>(a0_0.w), b0_0, c3_0);
      c0_0 = fma(vec4<f32>(a0_1.x), b0_1, c0_0);
      c1_0 = fma(vec4<f32>(a0_1.y), b0_1, c1_0);
      c2_0 = fma(vec4<f32>(a0_1.z), b0_1, c2_0);
      c3_0 = fma(vec4<f32>(a0_1.w), b0_1, c3_0);
      c0_0 = fma(vec4<f32>(a0_2.x), b0_2, c0_0);
      c1_0 = fma(vec4<f32>(a0_2.y), b0_2, c1_0);
      c2_0 = fma(vec4<f32>(a0_2.z), b0_2, c2_0);
      c3_0 = fma(vec4<f32>(a0_2.w), b0_2, c3_0);
      c0_0 = fma(vec4<f32>(a0_3.x), b0_3, c0_0);
      c1_0 = fma(vec4<f32>(a0_3.y), b0_3, c1_0);
      c2_0 = fma(vec4<f32>(a0_3.z), b0_3, c2_0);
      c3_0 = fma(vec4<f32>(a0_3.w), b0_3, c3_0);
    }
    workgroupBarrier();
  }
  if (slice == 1u) {
    tile_a[0u * 64u + thread % 64u] = c0_0;
    tile_a[1u * 64u + thread % 64u] = c1_0;
    tile_a[2u * 64u + thread % 64u] = c2_0;
    tile_a[3u * 64u + thread % 64u] = c3_0;
  }
  workgroupBarrier();
  if (slice == 0u) {
    c0_0 += tile_a[0u * 64u + thread];
    c1_0 += tile_a[1u * 64u + thread];
    c2_0 += tile_a[2u * 64u + thread];
    c3_0 += tile_a[3u * 64u + thread];
  }
  workgroupBarrier();
  if (slice == 2u) {
    tile_a[0u * 64u + thread % 64u] = c0_0;
    tile_a[1u * 64u + thread % 64u] = c1_0;
    tile_a[2u * 64u + thread % 64u] = c2_0;
    tile_a[3u * 64u + thread % 64u] = c3_0;
  }
  workgroupBarrier();
  if (slice == 0u) {
    c0_0 += tile_a[0u * 64u + thread];
    c1_0 += tile_a[1u * 64u + thread];
    c2_0 += tile_a[2u * 64u + thread];
    c3_0 += tile_a[3u * 64u + thread];
  }
  workgroupBarrier();
  if (slice == 3u) {
    tile_a[0u * 64u + thread % 64u] = c0_0;
    tile_a[1u * 64u + thread % 64u] = c1_0;
    tile_a[2u * 64u + thread % 64u] = c2_0;
    tile_a[3u * 64u + thread % 64u] = c3_0;
  }
  workgroupBarrier();
  if (slice == 0u) {
    c0_0 += tile_a[0u * 64u + thread];
    c1_0 += tile_a[1u * 64u + thread];
    c2_0 += tile_a[2u * 64u + thread];
    c3_0 += tile_a[3u * 64u + thread];
  }
  workgroupBarrier();
  if (slice == 0u) {
    let m_20 = m0 + 0u + 4u * ty;
    let n_21 = n0 + 0u + 4u * tx;
    if (n_21 + 0u < 48u) {
      finish_0((batch * 64u + m_20) * 12u + n_21 / 4u, c0_0);
    }
    let m_22 = m0 + 1u + 4u * ty;
    if (n_21 + 0u < 48u) {
      finish_0((batch * 64u + m_22) * 12u + n_21 / 4u, c1_0);
    }
    let m_23 = m0 + 2u + 4u * ty;
    if (n_21 + 0u < 48u) {
      finish_0((batch * 64u + m_23) * 12u + n_21 / 4u, c2_0);
    }
    let m_24 = m0 + 3u + 4u * ty;
    if (n_21 + 0u < 48u) {
      finish_0((batch * 64u + m_24) * 12u + n_21 / 4u, c3_0);
    }
  }
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let tile = group % 2u;
  let m0 = (group / 2u) % 2u * 32u;
  let batch = (group / 4u) % 1u;
  let split = group / 4u;
  part_0(batch, m0, (tile - 0u) * 32u, split, thread);
}

