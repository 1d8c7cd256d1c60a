import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');

/** Everything that is loaded before the first line of a module runs: files of ours and packages by name. */
function loadedBy(entry: string): Set<string> {
  const loaded = new Set<string>();
  const visit = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    const source = readFileSync(join(ROOT, file), 'utf8');
    for (const [, from = ''] of source.matchAll(
      /^(?:import|export) (?!type )(?:[^;'"]*? from )?'([^']+)';$/gm,
    )) {
      if (from.startsWith('.')) visit(join(dirname(file), from));
      else loaded.add(from);
    }
  };
  visit(entry);
  return loaded;
}

test('a client’s command starts without what only a node or a broker needs', () => {
  const loaded = loadedBy('src/main.ts');
  expect(loaded).toContain('src/cli/transfer.ts');
  expect(loaded).toContain('ws');
  for (const heavy of ['zod', 'level', 'pino', 'prom-client', 'src/server.ts', 'src/wire/index.ts']) {
    expect(loaded).not.toContain(heavy);
  }
  expect(loadedBy('src/serve.ts')).toContain('src/wire/index.ts');
});
