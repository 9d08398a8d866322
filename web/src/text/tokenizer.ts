// Tokenizers: text to ids and back.
import { localLibrary, type Handle, type Library } from '../wasm/library.js';
import type { JsonObject } from '../trace/recording.js';

const unused = new FinalizationRegistry<{ lib: Library; handle: Handle }>(({ lib, handle }) =>
  lib.call('tokenizer_free', handle),
);

export class Tokenizer {
  /** 'bytes', 'characters' or 'bpe'. */
  readonly kind: string;
  readonly vocabSize: number;

  private constructor(
    private readonly lib: Library,
    private readonly handle: Handle,
  ) {
    const { kind, vocab } = lib.json<{ kind: string; vocab: number }>('tokenizer_info', handle);
    this.kind = kind;
    this.vocabSize = vocab;
    unused.register(this, { lib, handle });
  }

  private static async make(options: JsonObject): Promise<Tokenizer> {
    const lib = await localLibrary();
    return new Tokenizer(lib, lib.need('tokenizer_new', JSON.stringify(options)));
  }

  /** One token for each of the 256 bytes. */
  static bytes(): Promise<Tokenizer> {
    return Tokenizer.make({ kind: 'bytes' });
  }
  /** One token for each character of the text. */
  static characters(text: string): Promise<Tokenizer> {
    return Tokenizer.make({ kind: 'characters', text });
  }
  /** Byte pairs of GPT-2: the contents of vocab.json and merges.txt. */
  static bpe(options: {
    vocab: string;
    merges: string;
    special?: readonly string[];
  }): Promise<Tokenizer> {
    return Tokenizer.make({ kind: 'bpe', special: [], ...options });
  }
  /** Learns byte pairs from a text. */
  static train(
    text: string,
    options: { vocab: number; special?: readonly string[] },
  ): Promise<Tokenizer> {
    return Tokenizer.make({ kind: 'train', special: [], text, ...options });
  }
  /** What toJSON() returned. */
  static async fromJSON(json: string): Promise<Tokenizer> {
    const lib = await localLibrary();
    return new Tokenizer(lib, lib.need('tokenizer_from_json', json));
  }

  encode(text: string): Int32Array<ArrayBuffer> {
    const { lib, handle } = this;
    return lib.withBytes(new Uint8Array(4), (place) =>
      lib.withBytes(new TextEncoder().encode(text), (pointer, size) => {
        const count = lib.index('tokenizer_encode', handle, pointer, size, place);
        const first = lib.wordAt(place) / 4;
        return new Int32Array(lib.module.words().subarray(first, first + count));
      }),
    );
  }

  /** The text of ids. Bytes that are no whole characters become U+FFFD. */
  decode(ids: ArrayLike<number>): string {
    return new TextDecoder().decode(this.decodeBytes(ids));
  }

  decodeBytes(ids: ArrayLike<number>): Uint8Array<ArrayBuffer> {
    const { lib, handle } = this;
    const values = Int32Array.from(ids);
    return lib.withBytes(new Uint8Array(4), (place) =>
      lib.withBytes(new Uint8Array(values.buffer), (pointer) => {
        const text = lib.need('tokenizer_decode', handle, pointer, values.length, place);
        return lib.bytesAt(text, lib.wordAt(place));
      }),
    );
  }

  /** The whole tokenizer as text. */
  toJSON(): string {
    return this.lib.text('tokenizer_json', this.handle);
  }
}
