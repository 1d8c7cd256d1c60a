import type { StoredState } from '../../../raft/index.ts';
import { CoreCluster, describe, diskOf } from './core-cluster.ts';

interface Step {
  /** Comment and blank lines before the command, as they stand. */
  readonly preface: string;
  readonly command: string;
  readonly expected: string;
}

/** A script is commands, each followed by `----` and the text it answered when it was last reviewed, up to a blank line. */
export function parseScript(text: string): Step[] {
  const steps: Step[] = [];
  const lines = text.split('\n');
  let preface = '';
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (line === '' || line.startsWith('#')) {
      preface += `${line}\n`;
      continue;
    }
    let end = at + 2;
    while (end < lines.length && lines[end] !== '') end += 1;
    steps.push({ preface, command: line, expected: lines.slice(at + 2, end).join('\n') });
    preface = '';
    at = end - 1;
  }
  return steps;
}

/** Runs a script from an empty group and answers it with the text it gives now. */
export function runScript(text: string): {
  now: string;
  mismatches: { command: string; expected: string; actual: string }[];
} {
  const runner = new Runner();
  let now = '';
  const mismatches = [];
  for (const { preface, command, expected } of parseScript(text)) {
    const actual = runner.run(command);
    now += `${preface}${command}\n----\n${actual}\n`;
    if (actual !== expected) mismatches.push({ command, expected, actual });
  }
  return { now, mismatches };
}

class Runner {
  #cluster = new CoreCluster([]);
  #sent = 0;

  run(line: string): string {
    const [command = '', ...args] = line.split(' ');
    this.#cluster.trace = [];
    const before = this.#statuses();
    const printed = this.#command(command, args);
    const sent = this.#cluster.sent.slice(this.#sent).map((message) => `sent ${describe(message)}`);
    this.#sent = this.#cluster.sent.length;
    const quiet = command === 'settle' || command === 'run';
    const changed = this.#statuses().filter((status) => !before.includes(status));
    return [...printed, ...this.#cluster.trace, ...(quiet ? [] : sent), ...changed].join('\n') || 'nothing';
  }

  #statuses(): string[] {
    return [...this.#cluster.members.keys()].map((id) => this.#cluster.status(id));
  }

  #command(command: string, args: string[]): string[] {
    const cluster = this.#cluster;
    const [first = '', second = ''] = args;
    switch (command) {
      case 'group':
        return this.#group(args);
      case 'timeout':
        cluster.timeout(first);
        return [];
      case 'tick':
        cluster.tick(first, Number(second));
        return [];
      case 'deliver':
        return this.#deliver(first, second);
      case 'drop':
        return cluster
          .take((each) => matches(each, first, second))
          .map((each) => `dropped ${describe(each)}`);
      case 'settle':
        cluster.settle();
        return [];
      case 'run':
        cluster.run(Number(first));
        return [];
      case 'propose':
        cluster.propose(first, ...args.slice(1));
        return [];
      case 'read':
        cluster.act(first, (core) => core.readIndex(Number(second)));
        return [];
      case 'reads':
        return cluster
          .of(first)
          .reads.splice(0)
          .map(
            ({ key, index }) =>
              `read ${key} ${index === null ? 'must be asked again' : `waits for ${index}`}`,
          );
      case 'hold':
        cluster.of(first).held = true;
        return [];
      case 'write':
        cluster.finishWrite(first);
        return [];
      case 'transfer':
        return [cluster.act(first, (core) => core.transfer(second)) ?? 'begun'];
      case 'isolate':
        cluster.isolate(first);
        return [];
      case 'heal':
        cluster.heal();
        return [];
      case 'crash':
        cluster.crash(first);
        return [];
      case 'restart':
        cluster.restart(first);
        return [];
      case 'log':
        return [`${first}: ${cluster.terms(first).join(' ')}`];
      default:
        throw new Error(`unknown command ${command}`);
    }
  }

  /** `a:1,1,2` gives a member a log of these terms, `a:1,1,2@4` a term of its own as well. */
  #group(args: string[]): string[] {
    const disks: Record<string, StoredState> = {};
    const ids = args.map((arg) => {
      const [id = '', log = ''] = arg.split(':');
      const [terms = '', term] = log.split('@');
      const list = terms === '' ? [] : terms.split(',').map(Number);
      disks[id] = term === undefined ? diskOf(list) : diskOf(list, Number(term));
      return id;
    });
    this.#cluster = new CoreCluster(ids, { disks });
    this.#sent = 0;
    return [];
  }

  /** Delivers what is on the wire now and matches; answers to it stay on the wire. */
  #deliver(link: string, type: string): string[] {
    for (const message of this.#cluster.take((each) => matches(each, link, type)))
      this.#cluster.deliver(message);
    return [];
  }
}

function matches(message: { from: string; to: string; type: string }, link: string, type: string): boolean {
  const [from = '*', to = '*'] = link === '' ? [] : link.split('->');
  return (
    (from === '*' || from === message.from) &&
    (to === '*' || to === message.to) &&
    (type === '' || type === message.type)
  );
}
