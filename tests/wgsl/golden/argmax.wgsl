// 5 x 1 workgroups
// arg_reduce 5 x 11: argmax
@group(0) @binding(0) var<storage, read> inputs: array<f32>;
@group(0) @binding(1) var<storage, read_write> outputs: array<i32>;

var<workgroup> places: array<i32, 64>;
var<workgroup> values: array<f32, 64>;
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn better(a: f32, i: i32, b: f32, j: i32) -> bool {
  if (i < 0) { return false; }
  if (j < 0) { return true; }
  if (is_nan(a) || is_nan(b)) { return is_nan(a) && (!is_nan(b) || i < j); }
  return a > b || (a == b && i < j);
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  var best = f32(0);
  var place = -1;
  for (var c = thread; c < 11u; c += 64u) {
    let x = group * 11u + c;
    let v_0 = inputs[x];
    let v = v_0;
    if (better(v, i32(c), best, place)) { best = v; place = i32(c); }
  }
  values[thread] = best;
  places[thread] = place;
  workgroupBarrier();
  if (thread == 0u) {
    for (var t = 1u; t < 64u; t++) {
      if (better(values[t], places[t], best, place)) { best = values[t]; place = places[t]; }
    }
    outputs[group] = place;
  }
}

