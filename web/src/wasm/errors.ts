// Errors of the library. Their text names the op first, then the rule with the real values, then a
// hint.

export type ErrorKind = 'user' | 'non_finite' | 'device' | 'out_of_memory' | 'internal';

/** An error of the library. `kind` says who has to act. */
export class TensorgradError extends Error {
  override name = 'TensorgradError';
  constructor(
    message: string,
    readonly kind: ErrorKind = 'user',
  ) {
    super(message);
  }
  /** @internal The same error with another text. */
  withMessage(message: string): TensorgradError {
    const own = new (this.constructor as new (message: string, kind: ErrorKind) => TensorgradError)(
      message,
      this.kind,
    );
    own.cause = this.cause;
    return own;
  }
}

/** A wrong call while a model is traced. The text has the caller's file and line. */
export class ShapeError extends TensorgradError {
  override name = 'ShapeError';
  constructor(message: string) {
    super(message, 'user');
  }
}

/** An error as it crosses from one thread to another. */
export interface WireError {
  name: string;
  message: string;
  kind: ErrorKind | null;
  stack: string | undefined;
}

export function toWire(error: unknown): WireError {
  if (!(error instanceof Error))
    return { name: 'Error', message: String(error), kind: null, stack: undefined };
  const kind = error instanceof TensorgradError ? error.kind : null;
  return { name: error.name, message: error.message, kind, stack: error.stack };
}

export function fromWire(wire: WireError): Error {
  const error =
    wire.name === 'ShapeError'
      ? new ShapeError(wire.message)
      : wire.kind
        ? new TensorgradError(wire.message, wire.kind)
        : new Error(wire.message);
  error.name = wire.name;
  if (wire.stack) error.stack = wire.stack;
  return error;
}
