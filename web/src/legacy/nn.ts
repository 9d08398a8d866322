// The namespace `nn` of version 0.0.12.
export { Linear, LayerNorm, RMSNorm, Embedding, Conv2d } from '../generated/layers.js';
export { splitHeads, mergeHeads } from '../generated/ops.js';
export { crossEntropy, nllLoss } from '../ops/ops.js';
export { crossEntropyLast, linearFwd, layerNormFwd, unsplitHeads } from './ops.js';
