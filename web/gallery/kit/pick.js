// Places on a canvas that visitors choose: by pointer, or with the arrow keys and Enter. A button
// lies over the canvas, so that assistive technology knows what can be done there.

const looks = {
  frame: 'position: relative; display: block; overflow: hidden',
  button: `position: absolute; inset: 0; width: 100%; height: 100%; padding: 0;
    border: 0; border-radius: 0; background: none; cursor: crosshair; touch-action: pan-y;
    outline-offset: -2px`,
  cross: `position: absolute; width: 16px; height: 16px; margin: -8px; border-radius: 50%;
    border: 2px solid var(--paper); outline: 2px solid var(--ink); pointer-events: none`,
};

/**
 * Calls choose(right, down), each from 0 to 1, for a click; with `drag` also while the pointer is
 * down, and for each arrow key. Returns a function that moves the cross.
 */
export function pick(canvas, label, choose, { drag = false } = {}) {
  const frame = document.createElement('span');
  const button = document.createElement('button');
  const cross = document.createElement('span');
  [frame.style.cssText, button.style.cssText, cross.style.cssText] = Object.values(looks);
  button.type = 'button';
  button.ariaLabel = `${label}: arrow keys move the cross${drag ? '' : ', and Enter adds'}`;
  canvas.replaceWith(frame);
  frame.append(canvas, button);
  button.append(cross);

  let place = [0.5, 0.5];
  function move(...to) {
    place = to.map((each) => Math.min(Math.max(each, 0), 1));
    cross.style.left = `${100 * place[0]}%`;
    cross.style.top = `${100 * place[1]}%`;
  }
  // The cross shows what is chosen, or where Enter would choose.
  const show = () => {
    cross.hidden = !drag && !button.matches(':focus-visible');
  };
  button.onfocus = button.onblur = show;
  move(...place);
  show();

  function point({ clientX, clientY }) {
    const { left, top, width, height } = button.getBoundingClientRect();
    move((clientX - left) / width, (clientY - top) / height);
    choose(...place);
  }
  // A click that a key makes has detail 0.
  button.onclick = (event) => (event.detail === 0 ? choose(...place) : point(event));
  button.onpointermove = (event) => {
    if (drag && event.buttons & 1) point(event);
  };
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  button.onkeydown = (event) => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const far = event.shiftKey ? 0.1 : 0.02;
    move(place[0] + far * step[0], place[1] + far * step[1]);
    if (drag) choose(...place);
    else show();
  };
  return move;
}
