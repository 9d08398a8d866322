// What a worker runs: one engine, and the messages of its handle.
import { Engine } from './engine/engine.js';
import { probe } from './engine/device.js';
import type { FromWorker, ToWorker } from './engine/protocol.js';
import { makeTextSession } from './engine/text_session.js';
import { toWire } from './wasm/errors.js';

interface Port {
  postMessage(message: FromWorker, transfer: ArrayBuffer[]): void;
  listen(listener: (message: ToWorker) => void): void;
}

async function port(): Promise<Port> {
  const scope = globalThis as unknown as {
    postMessage?: Port['postMessage'];
    onmessage: (event: MessageEvent<ToWorker>) => void;
  };
  if (scope.postMessage)
    return {
      postMessage: (message, transfer) => scope.postMessage!(message, transfer),
      listen: (listener) => (scope.onmessage = ({ data }) => listener(data)),
    };
  const threads = 'node:worker_threads';
  const { parentPort } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ threads)) as {
    parentPort: {
      postMessage: Port['postMessage'];
      on(event: 'message', listener: (message: ToWorker) => void): void;
    };
  };
  return {
    postMessage: (message, transfer) => parentPort.postMessage(message, transfer),
    listen: (listener) => parentPort.on('message', listener),
  };
}

// The buffers of a value that nobody here needs any more.
function buffersIn(value: unknown, found: Set<ArrayBuffer> = new Set()): Set<ArrayBuffer> {
  if (ArrayBuffer.isView(value)) {
    if (value.buffer instanceof ArrayBuffer) found.add(value.buffer);
  } else if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) buffersIn(part, found);
  }
  return found;
}

async function start(): Promise<void> {
  let engine: Promise<Engine> | undefined;
  const answer = async (message: ToWorker): Promise<unknown> => {
    if ('probe' in message) return probe();
    if ('open' in message) {
      const opening = Engine.open(message.open, (event) => send({ event }), makeTextSession);
      engine = opening.then((made) => made.engine);
      engine.catch(() => undefined); // the answer below says why
      return (await opening).opened;
    }
    const running = await engine!;
    if ('lose' in message) return running.loseDevice();
    if ('stop' in message) return running.stop();
    return running.request(message.command);
  };
  const { postMessage, listen } = await port();
  const send = (message: FromWorker, transfer: ArrayBuffer[] = []): void =>
    postMessage(message, transfer);
  listen((message) => {
    const { id } = message;
    // A value that cannot be sent is an error, too.
    answer(message)
      .then((value) => send({ id, value }, [...buffersIn(value)]))
      .catch((error: unknown) => send({ id, error: toWire(error) }));
  });
}

void start();
