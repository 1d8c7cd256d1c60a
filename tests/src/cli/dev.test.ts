import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Assignment } from '../../../placement/index.ts';
import type { CliEnvironment } from '../../../src/cli/index.ts';
import { MoveCounter } from '../../../src/cli/dev/moves.ts';
import { choosePorts } from '../../../src/cli/dev/ports.ts';
import { Screen, type Frame } from '../../../src/cli/dev/screen.ts';
import { runCli } from '../../support/cli.ts';
import { assignmentRow } from '../apply/harness.ts';

const shard = 'stream:s/0';
const changes = (revision: number, ...assignments: Assignment[]) => ({
  method: 'watch.changes',
  params: { revision, changes: assignments.map((assignment) => ({ kind: 'assignment', assignment })) },
});
const move = (step: 'staged' | 'fenced'): NonNullable<Assignment['move']> => ({
  role: 'leader',
  from: 'b1',
  to: 'b2',
  step,
  reason: 'balance',
  copied: false,
  drops: null,
  startedAtMs: 0,
  progressAtMs: 0,
});

describe('MoveCounter', () => {
  it('counts a leadership that was handed over, once', () => {
    const counter = new MoveCounter([assignmentRow(shard, ['b1', 'b2'])], 5);
    counter.take(changes(6, assignmentRow(shard, ['b1', 'b2'], { move: move('staged') })));
    counter.take(changes(7, assignmentRow(shard, ['b1', 'b2'], { move: move('fenced') })));
    expect(counter.finished).toEqual([]);
    counter.take(changes(8, assignmentRow(shard, ['b1', 'b2'], { leader: 'b2' })));
    counter.take(changes(9, assignmentRow(shard, ['b1', 'b2'], { leader: 'b2', state: 'active' })));
    expect(counter.finished).toEqual([{ shard, from: 'b1', to: 'b2' }]);
    expect(counter.revision).toBe(9);
  });

  it('counts no promotion and no first placement', () => {
    const counter = new MoveCounter([assignmentRow(shard, ['b1', 'b2'])], 5);
    counter.take(changes(6, assignmentRow('stream:s/1', ['b1', 'b2'])));
    counter.take(changes(7, assignmentRow(shard, ['b1', 'b2'], { leader: 'b2' })));
    expect(counter.finished).toEqual([]);
  });
});

describe('choosePorts', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });
  const listen = (): Promise<number> =>
    new Promise((resolve) => {
      const server = createServer();
      servers.push(server);
      server.listen(0, '127.0.0.1', () => {
        const address = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : 0);
      });
    });

  it('gives distinct free ports for 0', async () => {
    const ports = await choosePorts(3, 0, 7401);
    const all = ports.flatMap(({ client, peer }) => [client, peer]);
    expect(new Set(all).size).toBe(6);
    expect(all.every((port) => port > 0)).toBe(true);
  });

  it('refuses a port that was asked for and is taken, and works around a usual one', async () => {
    const taken = await listen();
    await expect(choosePorts(1, taken, 7401)).rejects.toMatchObject({ code: 'address_in_use' });
    const [free] = await choosePorts(1, undefined, taken);
    expect(free?.client).not.toBe(taken);
  });
});

describe('Screen', () => {
  const frame: Frame = {
    term: 2,
    leaderId: 'n1',
    members: [{ id: 'n1', role: 'leader' }],
    levels: {
      leaders: { 'stream:s': { b1: 1, b2: 1 } },
      leadersTotal: { b1: 1, b2: 1 },
      copiesTotal: { b1: 2, b2: 2 },
      maxLeaderSpreadPerResource: 0,
      leaderSpreadTotal: 0,
      copySpreadTotal: 0,
      maxCopySpreadPerResource: 0,
      minZonesPerShard: 2,
    },
    placement: { paused: false, level: true, leaderMovesLeft: 0, movesInFlight: 0 },
    moves: [{ shard, from: 'b1', to: 'b2', step: 'fenced' }],
    finished: [{ shard, from: 'b1', to: 'b2' }],
    seen: true,
    minimum: 1,
  };
  const show = (terminal: boolean): string => {
    let out = '';
    const environment = { terminal, out: (text: string) => void (out += text) } as CliEnvironment;
    const screen = new Screen(environment, ['banner']);
    screen.show(frame);
    screen.show(frame);
    screen.end(frame);
    return out;
  };

  it('prints a line for each thing that happens where there is no terminal', () => {
    expect(show(false).split('\n').slice(0, 6)).toEqual([
      'banner',
      'raft leader n1, term 2',
      'moved the leadership of stream:s/0 from b1 to b2 (1 of 1)',
      '',
      's:b1=1,b2=1',
      '',
    ]);
    expect(show(false)).toMatch(/leadership moves done 1, proven minimum 1\n$/);
    expect(show(false)).not.toContain('\u001B');
  });

  it('counts on without a minimum once something has asked for more moves than those of the beginning', () => {
    let out = '';
    const environment = { terminal: false, out: (text: string) => void (out += text) } as CliEnvironment;
    const screen = new Screen(environment, []);
    screen.show({ ...frame, finished: [...frame.finished, { shard, from: 'b2', to: 'b1' }] });
    expect(out).toContain('from b1 to b2 (1 of 1)\n');
    expect(out).toContain('from b2 to b1 (2)\n');
  });

  it('draws in place on a terminal and gives the cursor back', () => {
    const out = show(true);
    expect(out.startsWith('\u001B[?25l')).toBe(true);
    expect(out.lastIndexOf('\u001B[?25h')).toBeGreaterThan(out.lastIndexOf('\u001B[?25l'));
    expect(out).toContain('stream:s/0  b1 -> b2  fenced');
  });
});

describe('dev', () => {
  it.each([
    [['--nodes', '0'], 3, '--nodes'],
    [['--nodes', '8'], 3, '--nodes'],
    [['--brokers', '33'], 3, '--brokers'],
    [['--brokers', '2'], 3, 'the cluster file has 3'],
    [['--cluster', 'nowhere.json'], 3, 'no such file'],
    [['--timeout', 'soon'], 2, 'duration'],
    [['--port', 'x'], 2, 'whole number'],
    [['--data-dir', '/dev/null/x', '--port', '0'], 3, '--data-dir /dev/null/x: ENOTDIR'],
    [['--port', '65434'], 3, '65433 at most'],
    [['--port', '99999'], 3, '--port'],
    [['--copy-rate', '0'], 2, '1 or more'],
  ])('%j is refused before anything is started', async (args, code, word) => {
    const three = JSON.stringify({
      version: 1,
      brokers: [{ id: 'b1' }, { id: 'b2' }, { id: 'b3' }],
      resources: [],
      assignments: [],
    });
    const given = args.includes('--cluster') ? [] : ['--cluster', 'three.json'];
    const got = await runCli(['dev', ...given, ...args], { files: { 'three.json': three } });
    expect(got.code).toBe(code);
    expect(got.note).toContain(word);
  });
});
