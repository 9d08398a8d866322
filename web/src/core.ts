// tensorgrad/core: the package without text models and tokenizers, a smaller download.
export * from './api.js';
