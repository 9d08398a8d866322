// 4 x 1 workgroups
// matmul 1 x [33, 35]: matmul
@group(0) @binding(0) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> outputs: array<vec4<f32>>;

var<workgroup> tile_a: array<vec4<f32>, 512>;
var<workgroup> tile_b: array<vec4<f32>, 512>;
fn left(batch: u32, row: u32, column: u32) -> f32 {
  let i_0 = row * 35u + column;
  let v_1 = inputs[(i_0) >> 2u][(i_0) & 3u];
  return v_1;
}
fn right_0(batch: u32, row: u32, column: u32) -> f32 {
  let i_2 = row + column * 35u + 1216u;
  let v_3 = inputs[(i_2) >> 2u][(i_2) & 3u];
  return v_3;
}
fn finish_0(x: u32, product: f32) {
  outputs[(x) >> 2u][(x) & 3u] = product;
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
  var next_b_0 = vec4<f32>();
  var next_b_1 = vec4<f32>();
  let begin = split * 64u;
  let end = 35u;
  {
    let x_4 = m0 + 4u * (thread % 8u);
    let k_5 = begin + thread / 8u;
    if (x_4 + 0u < 33u && k_5 < 35u) { next_a_0.x = left(batch, x_4 + 0u, k_5); } else { next_a_0.x = 0.0f; }
    if (x_4 + 1u < 33u && k_5 < 35u) { next_a_0.y = left(batch, x_4 + 1u, k_5); } else { next_a_0.y = 0.0f; }
    if (x_4 + 2u < 33u && k_5 < 35u) { next_a_0.z = left(batch, x_4 + 2u, k_5); } else { next_a_0.z = 0.0f; }
    if (x_4 + 3u < 33u && k_5 < 35u) { next_a_0.w = left(batch, x_4 + 3u, k_5); } else { next_a_0.w = 0.0f; }
  }
  {
    let x_6 = m0 + 4u * ((thread + 256u) % 8u);
    let k_7 = begin + (thread + 256u) / 8u;
    if (x_6 + 0u < 33u && k_7 < 35u) { next_a_1.x = left(batch, x_6 + 0u, k_7); } else { next_a_1.x = 0.0f; }
    if (x_6 + 1u < 33u && k_7 < 35u) { next_a_1.y = left(batch, x_6 + 1u, k_7); } else { next_a_1.y = 0.0f; }
    if (x_6 + 2u < 33u && k_7 < 35u) { next_a_1.z = left(batch, x_6 + 2u, k_7); } else { next_a_1.z = 0.0f; }
    if (x_6 + 3u < 33u && k_7 < 35u) { next_a_1.w = left(batch, x_6 + 3u, k_7); } else { next_a_1.w = 0.0f; }
  }
  {
    let x_8 = n0 + 4u * (thread % 8u);
    let k_9 = begin + thread / 8u;
    if (x_8 + 0u < 37u && k_9 < 35u) { next_b_0.x = right_0(batch, k_9, x_8 + 0u); } else { next_b_0.x = 0.0f; }
    if (x_8 + 1u < 37u && k_9 < 35u) { next_b_0.y = right_0(batch, k_9, x_8 + 1u); } else { next_b_0.y = 0.0f; }
    if (x_8 + 2u < 37u && k_9 < 35u) { next_b_0.z = right_0(batch, k_9, x_8 + 2u); } else { next_b_0.z = 0.0f; }
    if (x_8 + 3u < 37u && k_9 < 35u) { next_b_0.w = right_0(batch, k_9, x_8 + 3u); } else { next_b_0.w = 0.0f; }
  }
  {
    let x_10 = n0 + 4u * ((thread + 256u) % 8u);
    let k_11 = begin + (thread + 256u) / 8u;
    if (x_10 + 0u < 37u && k_11 < 35u) { next_b_1.x = right_0(batch, k_11, x_10 + 0u); } else { next_b_1.x = 0.0f; }
    if (x_10 + 1u < 37u && k_11 < 35u) { next_b_1.y = right_0(batch, k_11, x_10 + 1u); } else { next_b_1.y = 0.0f; }
    if (x_10 + 2u < 37u && k_11 < 35u) { next_b_1.z = right_0(batch, k_11, x_10 + 2u); } else { next_b_1.z = 0.0f; }
    if (x_10 + 3u < 37u && k_11 < 35u) { next_b_1.w = right_0(batch, k_11, x_10 + 3u); } else { next_b_1.w = 0.0f; }
  }
  for (var k0 = begin; k0 < end; k0 += 64u) {
    {
      tile_a[thread] = next_a_0;
    }
    {
      tile_a[(thread + 256u)] = next_a_1;
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
      {
        let x_12 = m0 + 4u * (thread % 8u);
        let k_13 = next + thread / 8u;
        if (x_12 + 0u < 33u && k_13 < 35u) { next_a_0.x = left(batch, x_12 + 0u, k_13); } else { next_a_0.x = 0.0f; }
        if (x_12 + 1u < 33u && k_13 < 35u) { next_a_0.y = left(batch, x_12 + 1u, k_13); } else { next_a_0.y = 0.0f; }
        if (x_12 + 2u < 33u && k_13 < 35u) { next_a_0.z = left(batch, x_12 + 2u, k_13); } else { next_a_0.z = 0.0f; }
        if (x_12 + 3u < 33u && k_13 < 35u) { next_a_0.w = left(batch, x_12 + 3u, k_13); } else { next_a_0.w = 0.0f; }
      }
      {
        let x_14 = m0 + 4u * ((thread + 256u) % 8u);
        let k_15 = next + (thread + 256u) / 8u;
        if (x_14 + 0u < 33u && k_15 < 35u) { next_a_1.x = left(batch, x_14 + 0u, k_15); } else { next_a_1.x = 0.0f; }
        if (x_14 + 1u < 33u && k_15 < 35u) { next_a_1.y = left(batch, x_14 + 1u, k_15); } else { next_a_1.y = 0.0f; }
        if (x_14 + 2u < 33u && k_15 < 35u) { next_a_1.z = left(batch, x_14 + 2u, k_15); } else { next_a_1.z = 0.0f; }
        if (x_14 + 3u < 33u && k_15 < 35u) { next_a_1.w = left(batch, x_14 + 3u, k_15); } else { next_a_1.w = 0.0f; }
      }
      {
        let x_16 = n0 + 4u * (thread % 8u);
        let k_17 = next + thread / 8u;
        if (x_16 + 0u < 37u && k_17 < 35u) { next_b_0.x = right_0(batch, k_17, x_16 + 0u); } else { next_b_0.x = 0.0f; }
        if (x_16 + 1u < 37u && k_17 < 35u) { next_b_0.y = right_0(batch, k_17, x_16 + 1u); } else { next_b_0.y = 0.0f; }
        if (x_16 + 2u < 37u && k_17 < 35u) { next_b_0.z = right_0(batch, k_17, x_16 + 2u); } else { next_b_0.z = 0.0f; }
        if (x_16 + 3u < 37u && k_17 < 35u) { next_b_0.w = right_0(batch, k_17, x_16 + 3u); } else { next_b_0.w = 0.0f; }
      }
      {
        let x_18 = n0 + 4u * ((thread + 256u) % 8u);
        let k_19 = next + (thread + 256u) / 8u;
        if (x_18 + 0u < 37u && k_19 < 35u) { next_b_1.x = right_0(batch, k_19, x_18 + 0u); } else { next_b_1.x = 0.0f; }
        if (x_18 + 1u < 37u && k_19 < 35u) { next_b_1.y = right_0(batch, k_19, x_18 + 1u); } else { next_b_1.y = 0.0f; }
        if (x_18 + 2u < 37u && k_19 < 35u) { next_b_1.z = right_0(batch, k_19, x_18 + 2u); } else { next_b_1.z = 0.0f; }
        if (x_18 + 3u < 37u && k_19 < 35u) { next_b_1.w = right_0(batch, k_19, x_18 + 3u); } else { next_b_1.w = 0.0f; }
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
    if (m_20 < 33u && n_21 + 0u < 37u) {
      finish_0((batch * 33u + m_20) * 37u + n_21 + 0u, c0_0.x);
    }
    if (m_20 < 33u && n_21 + 1u < 37u) {
      finish_0((batch * 33u + m_20) * 37u + n_21 + 1u, c0_0.y);
    }
    if (m_20 < 33u && n_21 + 2u < 37u) {
      finish_0((batch * 33u + m_20) * 37u + n_21 + 2u, c0_0.z);
    }
    if (m_20 < 33u && n_21 + 3u < 37u) {
      finish_0((batch * 33u + m_20) * 37u + n_21 + 3u, c0_0.w);
    }
    let m_22 = m0 + 1u + 4u * ty;
    if (m_22 < 33u && n_21 + 0u < 37u) {
      finish_0((batch * 33u + m_22) * 37u + n_21 + 0u, c1_0.x);
    }
    if (m_22 < 33u && n_21 + 1u < 37u) {
      finish_0((batch * 33u + m_22) * 37u + n_21 + 1u, c1_0.y);
    }
    if (m_22 < 33u && n_21 + 2u < 37u) {
      finish_0((batch * 33u + m_22) * 37u + n_21 + 2u, c1_0.z);
    }
    if (m_22 < 33u && n_21 + 3u < 37u) {
      finish_0((batch * 33u + m_22) * 37u + n_21 + 3u, c1_0.w);
    }
    let m_23 = m0 + 2u + 4u * ty;
    if (m_23 < 33u && n_21 + 0u < 37u) {
      finish_0((batch * 33u + m_23) * 37u + n_21 + 0u, c2_0.x);
    }
    if (m_23 < 33u && n_21 + 1u < 37u) {
      finish_0((batch * 33u + m_23) * 37u + n_21 + 1u, c2_0.y);
    }
    if (m_23 < 33u && n_21 + 2u < 37u) {
      finish_0((batch * 33u + m_23) * 37u + n_21 + 2u, c2_0.z);
    }
    if (m_23 < 33u && n_21 + 3u < 37u) {
      finish_0((batch * 33u + m_23) * 37u + n_21 + 3u, c2_0.w);
    }
    let m_24 = m0 + 3u + 4u * ty;
    if (m_24 < 33u && n_21 + 0u < 37u) {
      finish_0((batch * 33u + m_24) * 37u + n_21 + 0u, c3_0.x);
    }
    if (m_24 < 33u && n_21 + 1u < 37u) {
      finish_0((batch * 33u + m_24) * 37u + n_21 + 1u, c3_0.y);
    }
    if (m_24 < 33u && n_21 + 2u < 37u) {
      finish_0((batch * 33u + m_24) * 37u + n_21 + 2u, c3_0.z);
    }
    if (m_24 < 33u && n_21 + 3u < 37u) {
      finish_0((batch * 33u + m_24) * 37u + n_21 + 3u, c3_0.w);
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

