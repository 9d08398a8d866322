// Tests that take long on SwiftShader run a part of their rows, another one each time.

/** The part that an environment variable names, or the one whose turn it is. */
export function chosen_part(variable, usual) {
  const text = process.env[variable];
  const named = (part, parts) => ({ part, parts, name: `${variable}=${part}/${parts}` });
  if (text === 'all') return { part: 0, parts: 1, name: `${variable}=all` };
  if (!text) return named(Math.floor(Date.now() / 1000) % usual, usual);
  const [, part, parts] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  if (!(Number(part) < Number(parts)))
    throw new Error(`${variable}: '${text}' is neither 'all' nor a part such as 7/150`);
  return named(Number(part), Number(parts));
}
