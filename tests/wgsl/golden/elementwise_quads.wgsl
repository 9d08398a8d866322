// 1 x 1 workgroups
// rows 1 x 128: add_gelu
@group(0) @binding(0) var<storage, read> inputs: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> outputs: array<vec4<f32>>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn error_function(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let size = abs(x);
  if (size <= 1.0f) {
    let z = x * x;
    return x * (1.12837917f + z * (-0.376126267f + z * (0.112835947f + z * (-0.026854212f + z * (0.00518908742f +
           z * (-0.000801686428f + z * 0.0000787587505f))))));
  }
  let t = 1.0f / (1.0f + 0.5f * min(size, 5.0f));
  let q = -0.00015676374f + t * (0.284954021f + t * (0.259408957f + t * (0.348818722f + t * (-0.105786556f +
          t * (0.566008221f + t * (-0.473083067f + t * 0.119894504f))))));
  let r = select(1.0f - exp(-size * size) * q, 1.0f, size > 4.2f);
  return select(r, -r, x < 0.0f);
}
fn error_function_4(a0: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(error_function(a0.x), error_function(a0.y), error_function(a0.z), error_function(a0.w));
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
  let v_5 = v_4 * vec4<f32>(0.707106769f);
  let v_6 = error_function_4(v_5);
  let v_7 = v_6 + vec4<f32>(1.0f);
  let v_8 = v_7 * vec4<f32>(0.5f);
  let v_9 = v_4 * v_8;
  outputs[x] = v_9;
}

