// 1 x 1 workgroups
// rows 1 x 128: add_gelu
@group(0) @binding(0) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> outputs: array<vec4<f32>>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn normal_cdf(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let size = min(abs(x), 15.0f);
  let u = 1.0f / (1.0f + 0.295f * size);
  let q = 1.81113173e-05f + u * (0.117268912f + u * (0.121857829f + u * (0.0840709656f + u * (0.168008953f +
          u * (-0.119773746f + u * (0.273574769f + u * (-0.184742779f + u * 0.0397169851f)))))));
  let head = bitcast<f32>(bitcast<u32>(size) & 0xfffff000u);
  let high = -0.5f * head * head;
  let low = -0.5f * (size - head) * (size + head);
  let n = max(round((high + low) * 1.44269504f), -127.0f);
  let r = ((high - n * 0.693145752f) - n * 0.00000142860677f) + low;
  let tail = q * exp(r) * bitcast<f32>(u32(i32(n) + 127) << 23u);
  return select(tail, 1.0f - tail, x > 0.0f);
}
fn normal_cdf_4(a0: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(normal_cdf(a0.x), normal_cdf(a0.y), normal_cdf(a0.z), normal_cdf(a0.w));
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let x = group * 64u + thread;
  if (x >= 32u) { return; }
  let v_0 = inputs[x];
  let p_1 = x % 4u;
  let i_2 = p_1 + 32u;
  let v_3 = inputs[i_2];
  let v_4 = v_0 + v_3;
  let v_5 = normal_cdf_4(v_4);
  let v_6 = v_4 * v_5;
  outputs[x] = v_6;
}

