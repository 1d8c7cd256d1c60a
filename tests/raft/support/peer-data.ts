import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../../../shared/peer-data/etcd-raft');

/** One case of etcd's data-driven tests: a command line with a body, and the text it must answer. */
export interface PeerCase {
  readonly file: string;
  readonly line: number;
  readonly command: string;
  readonly args: ReadonlyMap<string, string>;
  readonly body: string;
  readonly expected: string;
}

/** Whether the folder of peers' data lies beside the project. */
export function hasPeerData(folder: string): boolean {
  return existsSync(join(ROOT, folder, 'testdata'));
}

/** `null` args values are flags; lists keep their inner text without brackets. */
function parseArgs(text: string): ReadonlyMap<string, string> {
  const args = new Map<string, string>();
  for (const [, key, list, word] of text.matchAll(/([a-z]+)(?:=(?:\(([^)]*)\)|(\S+)))?/g)) {
    if (key !== undefined) args.set(key, list ?? word ?? '');
  }
  return args;
}

export function peerCases(folder: string): PeerCase[] {
  const directory = join(ROOT, folder, 'testdata');
  return readdirSync(directory)
    .sort()
    .flatMap((file) => casesOf(file, readFileSync(join(directory, file), 'utf8')));
}

function casesOf(file: string, text: string): PeerCase[] {
  const cases: PeerCase[] = [];
  const lines = text.split('\n');
  let at = 0;
  while (at < lines.length) {
    const head = lines[at] ?? '';
    if (head.trim() === '' || head.startsWith('#')) {
      at += 1;
      continue;
    }
    const start = at;
    const divider = lines.indexOf('----', at);
    let end = divider + 1;
    while (end < lines.length && lines[end] !== '') end += 1;
    const [command = '', ...rest] = head.split(' ');
    cases.push({
      file,
      line: start + 1,
      command,
      args: parseArgs(rest.join(' ')),
      body: lines
        .slice(start + 1, divider)
        .filter((line) => !line.startsWith('#'))
        .join(' '),
      expected: lines.slice(divider + 1, end).join('\n'),
    });
    at = end;
  }
  return cases;
}
