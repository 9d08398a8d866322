// tensorgrad: declare a model as a plain struct and write the forward pass as a plain function.
// compile() turns them into one training step. This header includes the whole public interface.
//
//   namespace tg = tensorgrad;
//   struct Mlp { tg::Linear l1{1, 64}, l2{64, 1}; };
//   auto train = tg::compile(Mlp{}, {.inputs = {{"x", {256, 1}}, {"y", {256, 1}}}},
//       [](const Mlp& m, const tg::Inputs& in) {
//         return mean(square(m.l2(relu(m.l1(in["x"]))) - in["y"]));
//       });
//   float loss = train.step({{"x", x}, {"y", y}}).loss();
#pragma once

#include "tensorgrad/array.h"           // Array: values on the host
#include "tensorgrad/checkpoint.h"      // saving and resuming
#include "tensorgrad/compile.h"         // compile, attach, step, run
#include "tensorgrad/dataset.h"         // text as training data
#include "tensorgrad/device.h"          // the list of devices
#include "tensorgrad/error.h"           // UserError, DeviceError, InternalError
#include "tensorgrad/future.h"          // futures, poll() for programs with an event loop
#include "tensorgrad/generate.h"        // text generation
#include "tensorgrad/language_model.h"  // models with several kinds of layers
#include "tensorgrad/mamba.h"           // state-space models
#include "tensorgrad/nn.h"              // layers
#include "tensorgrad/ops.h"             // ops
#include "tensorgrad/optim.h"           // optimizers, schedules
#include "tensorgrad/param.h"           // Param, init
#include "tensorgrad/progress.h"        // progress of compilation
#include "tensorgrad/safetensors.h"     // safetensors files
#include "tensorgrad/state.h"           // the state of a model while it generates
#include "tensorgrad/text_model.h"      // language model configs, PyTorch weights
#include "tensorgrad/tokenizer.h"       // text to tokens and back
#include "tensorgrad/trainer.h"         // training on text
