// Small things that a page keeps in the browser, such as a choice. Models are kept by storage.js.

/** What was remembered under this name, over `otherwise`. */
export function recall(name, otherwise) {
  try {
    return { ...otherwise, ...JSON.parse(localStorage.getItem(`tensorgrad ${name}`)) };
  } catch {
    return { ...otherwise }; // nothing is stored, or the browser refuses to
  }
}

export function remember(name, data) {
  try {
    localStorage.setItem(`tensorgrad ${name}`, JSON.stringify(data));
  } catch {
    // The page works without.
  }
}
