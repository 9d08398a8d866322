// A worker of the page that trains.
import { train_sine } from './actions.mjs';

onmessage = ({ data }) =>
  train_sine(data).then(postMessage, (error) => postMessage({ error: `${error.stack ?? error}` }));
