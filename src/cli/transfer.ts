import type { Command } from 'commander';
import type { AdminClient } from '../client/index.ts';
import type { Assignment, Broker, ClusterFile, Resource } from '../../placement/index.ts';
import type { CliEnvironment } from './environment.ts';
import { render } from './output.ts';
import { clusterCommand } from './session.ts';

/** What the brackets and keys of a part take at most, bytes. */
const PART_OVERHEAD_BYTES = 64;

export function addTransfer(program: Command, environment: CliEnvironment): void {
  clusterCommand(
    program.command('export').description('print the cluster as a cluster file'),
    environment,
    async ({ client, format }) => {
      const cluster = await exportCluster(client);
      // A cluster file is JSON: a table of it would not be one.
      environment.out(render({ data: cluster, text: () => '' }, format === 'yaml' ? 'yaml' : 'json'));
    },
  );
  clusterCommand(
    program
      .command('import')
      .description('make a cluster file the state of an empty cluster')
      .requiredOption('-f, --file <path>', 'the cluster file; - is standard input')
      .option('--overwrite', 'of a used cluster too: what it held is gone'),
    environment,
    async ({ client, done }, { file, overwrite }: { file: string; overwrite?: boolean }) => {
      const cluster = await readClusterFile(environment, file);
      const answer = await importCluster(client, cluster, overwrite === true);
      const { brokers, resources, assignments } = cluster;
      const counts = `${brokers.length} brokers, ${resources.length} resources, ${assignments.length} assignments`;
      done(`imported ${counts}`, answer);
    },
  );
}

export async function readClusterFile(environment: CliEnvironment, path: string): Promise<ClusterFile> {
  const { parseClusterFile } = await import('../cluster-file/index.ts');
  return parseClusterFile(await environment.readText(path), sourceOf(path));
}

/** What messages call a file that is read. */
export function sourceOf(path: string): string {
  return path === '-' ? 'standard input' : path;
}

export async function exportCluster(client: AdminClient): Promise<ClusterFile> {
  const { cluster } = await client.read<{ cluster: ClusterFile }>('export');
  return cluster;
}

/** Stages the file in parts; the last call makes it visible at once. */
export async function importCluster(
  client: AdminClient,
  cluster: ClusterFile,
  overwrite: boolean,
): Promise<Readonly<Record<string, unknown>>> {
  const { importId, maxPartBytes } = await client.write<{ importId: string; maxPartBytes: number }>(
    'import.begin',
  );
  const parts = splitParts(cluster, maxPartBytes);
  for (const [part, rows] of parts.entries()) {
    await client.write('import.part', { importId, part, ...rows });
  }
  const { policy, timeMs = null } = cluster;
  return client.write('import.commit', { importId, parts: parts.length, timeMs, policy, overwrite });
}

interface Part {
  readonly brokers: Broker[];
  readonly resources: Resource[];
  readonly assignments: Assignment[];
}

function splitParts(cluster: ClusterFile, maxPartBytes: number): Part[] {
  const parts: Part[] = [];
  let bytes = Infinity;
  /** The part that has room for the row. */
  const partFor = (row: object): Part => {
    const rowBytes = Buffer.byteLength(JSON.stringify(row)) + 1;
    const last = parts.at(-1);
    if (last !== undefined && bytes + rowBytes <= maxPartBytes - PART_OVERHEAD_BYTES) {
      bytes += rowBytes;
      return last;
    }
    const part = { brokers: [], resources: [], assignments: [] };
    parts.push(part);
    bytes = rowBytes;
    return part;
  };
  for (const row of cluster.brokers) partFor(row).brokers.push(row);
  for (const row of cluster.resources) partFor(row).resources.push(row);
  for (const row of cluster.assignments) partFor(row).assignments.push(row);
  return parts;
}
