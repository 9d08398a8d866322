// 64 x 1 workgroups
// matmul 1 x [64, 2048]: matmul_reduce_sum (parts)
@group(0) @binding(0) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> scratch: array<vec4<f32>>;

var<workgroup> tile_a: array<vec4<f32>, 512>;
var<workgroup> tile_b: array<vec4<f32>, 512>;
fn left(batch: u32, row: u32, column: u32) -> f32 {
  let i_0 = row + column * 64u;
  let v_1 = inputs[(i_0) >> 2u][(i_0) & 3u];
  return v_1;
}
fn left_4(batch: u32, row: u32, column: u32) -> vec4<f32> {
  let i_2 = row + column * 64u;
  return inputs[(i_2) >> 2u];
}
fn right_0(batch: u32, row: u32, column: u32) -> f32 {
  let i_3 = row * 64u + column + 131072u;
  let v_4 = inputs[(i_3) >> 2u][(i_3) & 3u];
  return v_4;
}
fn right_0_4(batch: u32, row: u32, column: u32) -> vec4<f32> {
  let i_5 = row * 64u + column + 131072u;
  return inputs[(i_5) >> 2u];
}
fn part_0(batch: u32, m0: u32, n0: u32, split: u32, thread: u32) {
  let slice = thread / 64u;
  let tx = thread % 8u;
  let ty = (thread % 64u) / 8u;
  var c0_0 = vec4<f32>();
  var c1_0 = vec4<f32>();
  var c2_0 = vec4<f32>();
  var c3_0 = vec4<f32>();
  var sums = vec4<f32>();
  var next_a_0 = vec4<f32>();
  var next_a_1 = vec4<f32>();
  var next_b_0 = vec4<f32>();
  var next_b_1 = vec4<f32>();
  let begin = split * 128u;
  let end = min(2048u, (split + 1u) * 128u);
  if (begin < end) {
    {
      let x_6 = m0 + 4u * (thread % 8u);
      let k_7 = begin + thread / 8u;
      next_a_0 = left_4(batch, x_6, k_7);
    }
    {
      let x_8 = m0 + 4u * ((thread + 256u) % 8u);
      let k_9 = begin + (thread + 256u) / 8u;
      next_a_1 = left_4(batch, x_8, k_9);
    }
    {
      let x_10 = n0 + 4u * (thread % 8u);
      let k_11 = begin + thread / 8u;
      next_b_0 = right_0_4(batch, k_11, x_10);
    }
    {
      let x_12 = n0 + 4u * ((thread + 256u) % 8u);
      let k_13 = begin + (thread + 256u) / 8u;
      next_b_1 = right_0_4(batch, k_13, x_12);
    }
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
        let x_14 = m0 + 4u * (thread % 8u);
        let k_15 = next + thread / 8u;
        next_a_0 = left_4(batch, x_14, k_15);
      }
      {
        let x_16 = m0 + 4u * ((thread + 256u) % 8u);
        let k_17 = next + (thread + 256u) / 8u;
        next_a_1 = left_4(batch, x_16, k_17);
      }
      {
        let x_18 = n0 + 4u * (thread % 8u);
        let k_19 = next + thread / 8u;
        next_b_0 = right_0_4(batch, k_19, x_18);
      }
      {
        let x_20 = n0 + 4u * ((thread + 256u) % 8u);
        let k_21 = next + (thread + 256u) / 8u;
        next_b_1 = right_0_4(batch, k_21, x_20);
      }
    }
    if (m0 == 0u) {
      for (var k = thread / 8u; k < 64u; k += 32u) {
        sums += tile_b[k * 8u + thread % 8u];
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
    let m_22 = m0 + 0u + 4u * ty;
    let n_23 = n0 + 0u + 4u * tx;
    scratch[0u + split * 1024u + (batch * 64u + m_22) * 16u + n_23 / 4u] = c0_0;
    let m_24 = m0 + 1u + 4u * ty;
    scratch[0u + split * 1024u + (batch * 64u + m_24) * 16u + n_23 / 4u] = c1_0;
    let m_25 = m0 + 2u + 4u * ty;
    scratch[0u + split * 1024u + (batch * 64u + m_25) * 16u + n_23 / 4u] = c2_0;
    let m_26 = m0 + 3u + 4u * ty;
    scratch[0u + split * 1024u + (batch * 64u + m_26) * 16u + n_23 / 4u] = c3_0;
  }
  tile_a[thread] = sums;
  workgroupBarrier();
  if (m0 == 0u && thread < 8u) {
    for (var j = 8u; j < 256u; j += 8u) { sums += tile_a[thread + j]; }
    if (n0 + 4u * thread + 0u < 64u) {
      scratch[(65536u + split * 64u + batch * 64u + n0 + 4u * thread + 0u) >> 2u][(65536u + split * 64u + batch * 64u + n0 + 4u * thread + 0u) & 3u] = sums.x;
    }
    if (n0 + 4u * thread + 1u < 64u) {
      scratch[(65536u + split * 64u + batch * 64u + n0 + 4u * thread + 1u) >> 2u][(65536u + split * 64u + batch * 64u + n0 + 4u * thread + 1u) & 3u] = sums.y;
    }
    if (n0 + 4u * thread + 2u < 64u) {
      scratch[(65536u + split * 64u + batch * 64u + n0 + 4u * thread + 2u) >> 2u][(65536u + split * 64u + batch * 64u + n0 + 4u * thread + 2u) & 3u] = sums.z;
    }
    if (n0 + 4u * thread + 3u < 64u) {
      scratch[(65536u + split * 64u + batch * 64u + n0 + 4u * thread + 3u) >> 2u][(65536u + split * 64u + batch * 64u + n0 + 4u * thread + 3u) & 3u] = sums.w;
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

// 17 x 1 workgroups
// matmul 1 x [64, 2048]: matmul_reduce_sum (whole)
@group(0) @binding(0) var<storage, read_write> outputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> scratch: array<vec4<f32>>;

fn finish_0(x: u32, product: vec4<f32>) {
  outputs[x] = product;
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let thread_x = group * 64u + thread;
  if (thread_x >= 0u && thread_x < 1024u) {
    let x = thread_x - 0u;
    var sum = vec4<f32>(0.0f);
    for (var split = 0u; split < 16u; split++) { sum += scratch[0u + split * 1024u + x]; }
    finish_0(x, sum);
  }
  if (thread_x >= 1024u && thread_x < 1088u) {
    let x = thread_x - 1024u;
    var sum = 0.0f;
    for (var split = 0u; split < 16u; split++) { sum += scratch[(65536u + split * 64u + x) >> 2u][(65536u + split * 64u + x) & 3u]; }
    outputs[(x + 4096u) >> 2u][(x + 4096u) & 3u] = sum;
  }
}

