// 4 x 1 workgroups
// scan 4 x 100: cumsum
@group(0) @binding(0) var<storage, read> inputs: array<f32>;
@group(0) @binding(1) var<storage, read_write> outputs: array<f32>;

var<workgroup> sums: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group = group_id.x;
  let row = group;
  let begin = thread * 2u;
  let end = min(100u, begin + 2u);
  var sum = f32(0);
  for (var i = begin; i < end; i++) {
    let c = i;
    let x = row * 100u + c;
    let v_0 = inputs[x];
    sum += v_0;
  }
  sums[thread] = sum;
  workgroupBarrier();
  sum = f32(0);
  for (var t = 0u; t < thread; t++) { sum += sums[t]; }
  for (var i = begin; i < end; i++) {
    let c = i;
    let x = row * 100u + c;
    let v_1 = inputs[x];
    sum += v_1;
    outputs[x] = sum;
  }
}

