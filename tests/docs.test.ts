import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../placement/index.ts';
import { buildProgram } from '../src/cli/index.ts';
import { parseClusterFile } from '../src/cluster-file/index.ts';
import { RPC_METHODS } from '../src/wire/index.ts';
import { leaves } from './support/cli.ts';
import { NODE_FLAGS } from './support/cluster.ts';

const root = (name: string): string => readFileSync(join(import.meta.dirname, '..', name), 'utf8');
const doc = (name: string): string => root(join('docs', name));

describe('docs/api.md', () => {
  const COMMON = ['deadlineMs', 'consistency', 'requestId'];

  it.each(RPC_METHODS.map((method) => [method.name, method] as const))('has %s as it is', (name, method) => {
    const { kind, http, summary, params } = method;
    const route = http === null ? 'WebSocket only' : `\`${http.verb} /v1${http.path}\``;
    const own = Object.keys(params.shape).filter((key) => !COMMON.includes(key));
    const listed = own.length === 0 ? '-' : own.map((key) => `\`${key}\``).join(', ');
    expect(doc('api.md').split('\n')).toContain(
      `| \`${name}\` | ${kind} | ${route} | ${listed} | ${summary} |`,
    );
  });

  it('has no method that does not exist', () => {
    const rows = doc('api.md').match(/^\| `[a-zA-Z.]+` \| (read|write) \|/gm) ?? [];
    expect(rows).toHaveLength(RPC_METHODS.length);
  });
});

describe('the flags that a node is started with', () => {
  const flags = NODE_FLAGS.join(' ');

  it.each(['README.md', 'package.json'])('are the same in %s', (name) => {
    expect(root(name)).toContain(`node ${flags} dist/src/main.js`);
  });

  it('are the same in the image', () => {
    const words = ['node', ...NODE_FLAGS, '/opt/evenkeel/dist/src/main.js'].map((word) => `"${word}"`);
    expect(root('Dockerfile')).toContain(`ENTRYPOINT [${words.join(', ')}]`);
  });
});

describe('docs/cli.md', () => {
  it.each(leaves(buildProgram()).filter(([path]) => !/^(stream|cache) /.test(path)))('has %s', (path) => {
    expect(doc('cli.md')).toContain(`evenkeel ${path}`);
  });
});

describe('docs/cluster-file.md', () => {
  it('has every key of a file', () => {
    const [first = ''] = /^\{\n[^]*?^\}/m.exec(doc('cluster-file.md')) ?? [];
    const file = parseClusterFile(first);
    const move = ['role', 'from', 'to', 'step', 'reason', 'copied', 'drops', 'startedAtMs', 'progressAtMs'];
    const rows = [file.brokers[0], file.resources[0], file.assignments[0], DEFAULT_POLICY];
    for (const key of [...rows.flatMap((row) => Object.keys(row ?? {})), ...move]) {
      expect(doc('cluster-file.md')).toContain(`\`${key}\``);
    }
  });

  it('has the defaults of the policy', () => {
    for (const [key, value] of Object.entries(DEFAULT_POLICY)) {
      const row = doc('cluster-file.md')
        .split('\n')
        .find(
          (line) =>
            line.includes(`\`${key}\``) &&
            line.startsWith('| `') &&
            !/needed/.test(line) &&
            line.split('|').length === 5,
        );
      const shown = typeof value === 'number' ? value.toLocaleString('en') : String(value);
      expect(row, key).toContain(shown);
    }
  });
});
