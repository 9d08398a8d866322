// What people need who cannot see a page, or not well: names and contrast.

const named = new Set([
  'button', 'checkbox', 'combobox', 'image', 'img', 'link', 'radio', 'searchbox', 'slider',
  'spinbutton', 'switch', 'tab', 'textbox', 'Canvas', 'DisclosureTriangle',
]);

/** The controls and pictures that a screen reader has no name for. */
export async function unnamed(page) {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  return nodes
    .filter(({ ignored, role, name }) => !ignored && named.has(role?.value) && !name?.value?.trim())
    .map(({ role, properties }) => `${role.value} ${JSON.stringify(properties)}`);
}

/** The texts whose contrast with what is behind them is below 4.5. */
export function contrasts(page) {
  return page.evaluate(() => {
    const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const rgba = (colour) => {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data];
    };
    const over = ([r, g, b, a], below) =>
      [r, g, b].map((each, i) => (each * a + below[i] * (255 - a)) / 255);
    const luminance = (rgb) => {
      const [r, g, b] = rgb.map((each) => {
        const share = each / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
      if (!element) return rgba('Canvas').slice(0, 3);
      return over(rgba(getComputedStyle(element).backgroundColor), behind(element.parentElement));
    };
    const bad = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { parentElement: element, textContent } = walker.currentNode;
      if (!textContent.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
      if (element.closest(':disabled, [aria-hidden=true], script, style, option')) continue;
      const paint = element.closest('svg') ? 'fill' : 'color';
      const back = behind(element);
      const front = over(rgba(getComputedStyle(element)[paint]), back);
      const [low, high] = [luminance(front), luminance(back)].sort((a, b) => a - b);
      const contrast = (high + 0.05) / (low + 0.05);
      if (contrast < 4.5) bad.push(`${contrast.toFixed(2)}: ${textContent.trim().slice(0, 40)}`);
    }
    return bad;
  });
}
