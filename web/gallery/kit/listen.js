// What happens to a page: the visitor uses its controls, it changes its width or its colours, it
// goes to the background, and it is closed.
import { close, keep, load, move, reset, save } from './jobs.js';
import { State, trains } from './states.js';

export function listen(page) {
  controls(page);
  looks(page);
  document.addEventListener('visibilitychange', () => {
    page.enter(document.hidden ? 'hide' : 'show');
    if (document.hidden && page.state === State.hidden) page.later(() => keep(page));
  });
  addEventListener('pagehide', () => {
    page.closed = true;
    close(page.subject);
  });
  addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
}

function controls(page) {
  const { parts } = page;
  function start() {
    page.problem('');
    if (page.run.step >= page.limit) page.limit += page.portion;
    page.enter('start');
  }
  function stop() {
    page.enter('pause');
    page.later(() => page.draw());
    page.later(() => keep(page));
  }
  const startAfresh = () =>
    page.later(async () => {
      await reset(page);
      page.enter('start');
    });
  parts.device.value = page.device;
  parts.start.onclick = () => (trains(page.state) ? stop() : start());
  parts['go-on'].onclick = start;
  parts.afresh.onclick = startAfresh;
  parts.reset.onclick = () => {
    if (page.state === State.asking) startAfresh();
    else page.later(() => reset(page));
  };
  parts.rate.oninput = () => {
    page.run.rate = page.spec.rate * 10 ** Number(parts.rate.value);
    page.frame.showRate(page.run.rate);
  };
  parts.device.onchange = () => page.later(() => move(page, parts.device.value));
  parts.save.onclick = () => page.later(() => save(page));
  parts.load.onchange = () => {
    const [file] = parts.load.files;
    parts.load.value = '';
    if (file) page.later(() => load(page, file));
  };
  parts.compiler.ontoggle = () => page.showCompiler();
}

// Drawings follow the width of the page and its colours.
function looks(page) {
  let waits = false;
  const redraw = () => {
    if (waits || !page.subject) return;
    waits = true;
    page.later(async () => {
      waits = false;
      await page.draw();
    });
  };
  const main = document.querySelector('main');
  let width = main.clientWidth;
  new ResizeObserver(() => {
    if (main.clientWidth === width) return;
    width = main.clientWidth;
    redraw();
  }).observe(main);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
}
