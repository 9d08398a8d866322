// tensorgrad: declare a model as a plain struct, write the forward pass as a plain function, and
// compile() makes one training step of it. This header includes the whole public interface.
//
//   namespace tg = tensorgrad;
//   struct Mlp { tg::Linear l1{1, 64}, l2{64, 1}; };
//   auto train = tg::compile(Mlp{}, {.inputs = {{"x", {256, 1}}, {"y", {256, 1}}}},
//       [](const Mlp& m, const tg::Inputs& in) {
//         return mean(square(m.l2(relu(m.l1(in["x"]))) - in["y"]));
//       });
//   float loss = train.step({{"x", x}, {"y", y}}).loss();
#pragma once

#include "tensorgrad/array.h"    // Array: numbers on the host
#include "tensorgrad/checkpoint.h"  // saving and going on
#include "tensorgrad/compile.h"  // compile, attach, step, run
#include "tensorgrad/dataset.h"  // text as training data
#include "tensorgrad/device.h"   // devices
#include "tensorgrad/error.h"    // UserError, DeviceError, InternalError
#include "tensorgrad/generate.h"  // text from a trained model
#include "tensorgrad/language_model.h"  // layers of several kinds in one model
#include "tensorgrad/mamba.h"    // state-space models
#include "tensorgrad/nn.h"       // layers
#include "tensorgrad/ops.h"      // ops
#include "tensorgrad/optim.h"    // optimizers, schedules
#include "tensorgrad/param.h"    // Param, init
#include "tensorgrad/safetensors.h"  // arrays in files
#include "tensorgrad/state.h"    // what a model remembers while it generates
#include "tensorgrad/text_model.h"  // a language model by its kind and sizes
#include "tensorgrad/tokenizer.h"  // text to tokens and back
#include "tensorgrad/trainer.h"  // training on text
