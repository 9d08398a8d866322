// Keeps runs in the browser's storage, by name: what Run.stored() returns. A browser may refuse to
// store (private windows do); a page then works without.

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error('another page uses an older version'));
  });
}

async function withRuns(mode, body) {
  const opening = indexedDB.open('tensorgrad gallery', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('runs');
  const database = await promised(opening);
  try {
    const transaction = database.transaction('runs', mode);
    const result = await promised(body(transaction.objectStore('runs')));
    if (mode === 'readwrite')
      await new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error); // the quota, for example
      });
    return result;
  } finally {
    database.close();
  }
}

/** Returns the run, or undefined. */
export async function stored(name) {
  try {
    return await withRuns('readonly', (runs) => runs.get(name));
  } catch {
    return undefined;
  }
}

/** Resolves to whether the run was stored. */
export async function store(name, run) {
  try {
    await withRuns('readwrite', (runs) => runs.put(run, name));
    return true;
  } catch {
    return false;
  }
}

export async function forget(name) {
  await withRuns('readwrite', (runs) => runs.delete(name)).catch(() => undefined);
}
