import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Process, until } from '../support/cluster.ts';

/** Processes that were started by the process `parent`, and theirs. */
function descendants(parent: number): number[] {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const children = rows.flatMap(([pid = 0, ppid = 0]) => (ppid === parent ? [pid] : []));
  return [...children, ...children.flatMap(descendants)];
}

const alive = (pid: number): boolean => existsSync(`/proc/${pid}`);

describe('evenkeel dev', () => {
  const started: Process[] = [];
  const directories: string[] = [];
  afterEach(async () => {
    for (const one of started.splice(0)) if (one.running) await one.kill('SIGKILL');
    for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
  });
  const dev = (...args: string[]): Process => {
    const one = new Process(['dev', ...args]);
    started.push(one);
    return one;
  };
  const dataDirectory = (one: Process): string => /logs in (.+)\/logs/.exec(one.stdout)?.[1] ?? '';
  const newDirectory = (): string => {
    const directory = mkdtempSync(join(tmpdir(), 'evenkeel-test-'));
    directories.push(directory);
    return directory;
  };

  it('levels the lopsided cluster in the proven fewest moves and leaves nothing behind', async () => {
    const one = dev('--port', '0', '--until-level');
    const { code } = await one.exited;
    expect(one.stderr).toBe('');
    expect(code).toBe(0);
    expect(one.stdout).toMatch(/^perf-quorum:b1=4,b2=4,b3=4$/m);
    expect(one.stdout).toMatch(/^leader spread: 1 at most per resource, 1 in total$/m);
    expect(one.stdout).toMatch(/^leadership moves done 13, proven minimum 13$/m);
    expect(one.stdout.match(/^moved the leadership of /gm)).toHaveLength(13);
    const data = dataDirectory(one);
    expect(data).not.toBe('');
    expect(existsSync(data)).toBe(false);
  });

  it('ends cleanly on SIGINT, and with a data directory goes on where it was', async () => {
    const directory = newDirectory();
    const first = dev('--port', '0', '--data-dir', directory);
    await first.line(/^raft leader n\d/);
    const pids = descendants(first.child.pid ?? 0);
    expect(pids).toHaveLength(6);
    expect(await first.kill('SIGINT')).toEqual({ code: 0, signal: null });
    expect(pids.filter(alive)).toEqual([]);
    const second = dev('--data-dir', directory, '--until-level');
    expect((await second.exited).code).toBe(0);
    expect(second.stderr).toContain('holds a cluster already');
    expect(second.stdout).toMatch(/^perf-quorum:b1=4,b2=4,b3=4$/m);
    const other = dev('--data-dir', directory, '--nodes', '1');
    expect((await other.exited).code).toBe(3);
    expect(other.stderr).toContain('--nodes cannot change it');
  });

  it('takes its processes with it when it is killed', async () => {
    const one = dev('--port', '0');
    await one.line(/^raft leader n\d/);
    const pids = descendants(one.child.pid ?? 0);
    await one.kill('SIGKILL');
    await until('the end of its processes', async () => pids.every((pid) => !alive(pid)), 10_000);
    rmSync(dataDirectory(one), { recursive: true, force: true });
  });

  it('is exit 1 where the cluster is not level in time', async () => {
    const directory = newDirectory();
    const file = join(directory, 'paused.json');
    const replicas = ['b1', 'b2'];
    const assignments = Array.from({ length: 4 }, (_, i) => ({
      shard: `stream:s/${i}`,
      leader: 'b1',
      replicas,
    }));
    const brokers = replicas.map((id) => ({ id }));
    const resources = [{ name: 's', shards: 4, replicationFactor: 2 }];
    const policy = { paused: true };
    writeFileSync(file, JSON.stringify({ version: 1, brokers, resources, assignments, policy }));
    const one = dev('--port', '0', '--nodes', '1', '--cluster', file, '--until-level', '--timeout', '1s');
    expect((await one.exited).code).toBe(1);
    expect(one.stderr).toContain('not level within 1000 ms');
    expect(one.stdout).toMatch(/^s:b1=4,b2=0,b3=0$/m);
  });

  it('says which port is taken', async () => {
    const first = dev('--port', '0', '--nodes', '1');
    await first.line(/^raft leader n1/);
    const port = /endpoints 127\.0\.0\.1:(\d+)/.exec(first.stdout)?.[1] ?? '';
    const second = dev('--nodes', '1', '--port', port);
    expect((await second.exited).code).toBe(1);
    expect(second.stderr).toContain(port);
    await first.kill('SIGINT');
  });
});
