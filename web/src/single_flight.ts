// The newest of calls that overlap.

export type SingleFlightResult<R> = { kind: 'completed'; value: R } | { kind: 'aborted' };

/**
 * Wraps an asynchronous function so that one call is under way and one waits. A newer call takes
 * the place of the one that waits, whose result is then 'aborted'.
 */
export function singleFlight<A, R>(
  fn: (arg: A) => Promise<R>,
): (arg: A) => Promise<SingleFlightResult<R>> {
  interface Call {
    arg: A;
    resolve: (result: SingleFlightResult<R>) => void;
    reject: (error: unknown) => void;
  }
  let busy = false;
  let waiting: Call | undefined;

  async function start({ arg, resolve, reject }: Call): Promise<void> {
    busy = true;
    try {
      resolve({ kind: 'completed', value: await fn(arg) });
    } catch (error) {
      reject(error);
    }
    busy = false;
    const next = waiting;
    waiting = undefined;
    if (next) void start(next);
  }

  return (arg) =>
    new Promise((resolve, reject) => {
      const call = { arg, resolve, reject };
      if (!busy) return void start(call);
      waiting?.resolve({ kind: 'aborted' });
      waiting = call;
    });
}
