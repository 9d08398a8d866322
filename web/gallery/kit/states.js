// The states of a page, and what leads from one to another:
//
//                 +------- start -------+    +------ lose -----> lost
//                 |                     v    |                    |
//   opening --> asking               running <------ recover -----+
//    ^  |  |                          ^  ^ |
//    |  |  +-------- start -----------+  | +-- hide --> hidden -- show --> running
//    |  +----------- pause --> paused ---+
//    |
//   open, from every state that is not opening: another device. `fail` leads from every state to
//   failed.
//
//   opening  the model is compiled
//   asking   a stored run was found: does the visitor want to go on with it?
//   running  rounds of steps are made
//   paused   the visitor stopped it, or the number of steps in the URL was reached
//   hidden   the page is in the background: nothing is computed
//   lost     the device was lost; the package opens a new one and repeats what was lost
//   failed   a step or the compilation failed; the error is shown

export const State = Object.freeze({
  opening: 'opening',
  asking: 'asking',
  running: 'running',
  paused: 'paused',
  hidden: 'hidden',
  lost: 'lost',
  failed: 'failed',
});

const { opening, asking, running, paused, hidden, lost, failed } = State;
const transitions = {
  [opening]: { ask: asking, start: running, pause: paused, fail: failed },
  [asking]: { start: running, pause: paused, open: opening, fail: failed },
  [running]: { pause: paused, hide: hidden, lose: lost, open: opening, fail: failed },
  [paused]: { start: running, open: opening, fail: failed },
  [hidden]: { show: running, pause: paused, lose: lost, open: opening, fail: failed },
  [lost]: { recover: running, pause: paused, open: opening, fail: failed },
  [failed]: { start: running, pause: paused, open: opening, fail: failed },
};

/** The state after an event, which is the same state where the event has no meaning. */
export const after = (state, event) => transitions[state][event] ?? state;

/** Whether the page trains, or will by itself. */
export const trains = (state) => [running, lost, hidden].includes(state);
