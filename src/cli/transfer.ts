import type { Command } from 'commander';
import type { AdminClient } from '../client/index.ts';
import type { Assignment, Broker, ClusterFile, Resource } from '../../placement/index.ts';
import type { CliEnvironment } from './environment.ts';
import type { StagedImportItem } from '../wire/index.ts';
import { render, table, type Column } from './output.ts';
import { clusterCommand, type Session } from './session.ts';

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
  addImport(program, environment);
}

interface ImportOptions {
  readonly file?: string;
  readonly overwrite?: boolean;
  readonly list?: boolean;
  readonly abort?: string;
}

function addImport(program: Command, environment: CliEnvironment): void {
  const command = program
    .command('import')
    .description('make a cluster file the state of an empty cluster')
    .option('-f, --file <path>', 'the cluster file; - is standard input')
    .option('--overwrite', 'of a used cluster too: what it held is gone')
    .option('--list', 'show imports that were begun and not finished, instead')
    .option('--abort <import>', 'give one of those up, instead');
  clusterCommand(command, environment, async (session, options: ImportOptions) => {
    const { file, overwrite, list, abort } = options;
    if ([file, list, abort].filter((given) => given !== undefined).length !== 1) {
      command.error('error: give one of -f, --file <path>, --list and --abort <import>');
    }
    if (file !== undefined) await importFile(session, file, overwrite === true);
    else if (abort !== undefined) {
      session.done(
        `aborted import ${abort}`,
        await session.client.write('import.abort', { importId: abort }),
      );
    } else await listImports(session);
  });
}

async function importFile(
  { client, environment, done }: Session,
  file: string,
  overwrite: boolean,
): Promise<void> {
  const cluster = await readClusterFile(environment, file);
  const answer = await importCluster(client, cluster, overwrite);
  const { brokers, resources, assignments } = cluster;
  const counts = `${brokers.length} brokers, ${resources.length} resources, ${assignments.length} assignments`;
  done(`imported ${counts}`, answer);
}

const STAGED_COLUMNS: readonly Column<StagedImportItem>[] = [
  { name: 'IMPORT', cell: ({ importId }) => importId },
  { name: 'PARTS', cell: ({ parts }) => parts },
  { name: 'ROWS', cell: ({ rows }) => rows },
  { name: 'EXPIRES IN', cell: ({ expiresInMs }) => `${Math.ceil(expiresInMs / 60_000)} min` },
];

async function listImports({ client, show }: Session): Promise<void> {
  const answer = await client.read<{ items: StagedImportItem[] }>('import.list');
  show({ data: answer, text: (wide) => table(STAGED_COLUMNS, answer.items, wide) });
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
  const { policy, timeMs = null } = cluster;
  try {
    for (const [part, rows] of parts.entries()) {
      await client.write('import.part', { importId, part, ...rows });
    }
    return await client.write('import.commit', { importId, parts: parts.length, timeMs, policy, overwrite });
  } catch (error) {
    // Where this fails too the parts expire; where the commit did take effect there is nothing to abort.
    await client.write('import.abort', { importId }).catch(() => undefined);
    throw error;
  }
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
