import { Option, type Command } from 'commander';
import { resourceKey, type ResourceKind, type ZonePolicy } from '../../placement/index.ts';
import type { ResourceItem } from '../wire/index.ts';
import { collectLabels, parseCount, resourceArgument } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { resourceText, table, type Column } from './output.ts';
import { clusterCommand } from './session.ts';

const COLUMNS: readonly Column<ResourceItem>[] = [
  { name: 'KIND', cell: ({ kind }) => kind },
  { name: 'NAME', cell: ({ name }) => name },
  { name: 'SHARDS', cell: ({ shards }) => shards },
  { name: 'RF', cell: ({ replicationFactor }) => replicationFactor },
  { name: 'DURABLE', cell: ({ durable }) => durable },
  { name: 'ZONE POLICY', cell: ({ zonePolicy }) => zonePolicy },
  { name: 'LABELS', cell: ({ labels }) => labelsText(labels) },
  { name: 'REVISION', wide: true, cell: ({ resourceRevision }) => resourceRevision },
];

function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

interface NounOptions {
  /** What the noun itself says; `resource` says nothing. */
  readonly kind: ResourceKind | undefined;
}

/** `resource`, and its aliases `stream` and `cache`, which say the kind. */
export function addResource(program: Command, environment: CliEnvironment): void {
  addNoun(program.command('resource').description('streams and caches'), environment, { kind: undefined });
  addNoun(program.command('stream').description('streams'), environment, { kind: 'stream' });
  addNoun(program.command('cache').description('caches'), environment, { kind: 'cache' });
}

function addNoun(noun: Command, environment: CliEnvironment, { kind }: NounOptions): void {
  addReads(noun, environment, { kind });
  addCreate(noun, environment, { kind });
  addAlter(noun, environment, { kind });
  clusterCommand(
    withKind(
      noun.command('delete <name>').description('delete it with every assignment of its shards'),
      kind,
    ).option('--expected-revision <n>', 'refuse unless it is still at this revision', parseCount),
    environment,
    async ({ client, done }, options: { kind?: ResourceKind; expectedRevision?: number }, [name = '']) => {
      const resource = resourceArgument(name, options.kind ?? kind);
      const { expectedRevision } = options;
      const answer = await client.write('resource.delete', { ...resource, expectedRevision });
      done(`deleted ${resourceKey(resource)}`, answer);
    },
  );
}

/** `--kind`, where the noun does not say it. */
function withKind(command: Command, kind: ResourceKind | undefined): Command {
  if (kind !== undefined) return command;
  return command.addOption(new Option('--kind <kind>', 'of the resource').choices(['stream', 'cache']));
}

function addReads(noun: Command, environment: CliEnvironment, { kind }: NounOptions): void {
  clusterCommand(
    withKind(noun.command('list').description('list them'), kind),
    environment,
    async ({ client, show }, options: { kind?: ResourceKind }) => {
      const { revision, items } = await client.read<{ items: ResourceItem[] }>('resource.list', {
        kind: options.kind ?? kind,
      });
      show({ data: { revision, items }, text: (wide) => table(COLUMNS, items, wide) });
    },
  );
  clusterCommand(
    withKind(noun.command('show <name>').description('show one'), kind),
    environment,
    async ({ client, show }, options: { kind?: ResourceKind }, [name = '']) => {
      const params = resourceArgument(name, options.kind ?? kind);
      const answer = await client.read<{ resource: ResourceItem }>('resource.show', params);
      show({ data: answer, text: (wide) => table(COLUMNS, [answer.resource], wide) });
    },
  );
}

interface CreateOptions extends Record<string, unknown> {
  readonly kind?: ResourceKind;
  readonly shards: number;
  readonly replicationFactor?: number;
  readonly ephemeral?: boolean;
  readonly zonePolicy?: ZonePolicy;
  readonly label?: Record<string, string>;
}

function addCreate(noun: Command, environment: CliEnvironment, { kind }: NounOptions): void {
  const create = withKind(noun.command('create <name>').description('create one'), kind)
    .requiredOption('--shards <n>', 'its shards', parseCount)
    .option('--replication-factor <n>', 'copies of each shard (1)', parseCount)
    .option('--ephemeral', 'its shards have no log to hand over')
    .addOption(zonePolicyOption(['broker', 'zone', 'majority']))
    .option('--label <key=value>', 'a label; may be given again', collectLabels(false));
  clusterCommand(create, environment, async ({ client, done }, options: CreateOptions, [name = '']) => {
    const resource = resourceArgument(name, options.kind ?? kind);
    const { shards, replicationFactor, zonePolicy, label: labels } = options;
    const answer = await client.write('resource.create', {
      ...resource,
      shards,
      replicationFactor,
      durable: options.ephemeral !== true,
      zonePolicy,
      labels,
    });
    done(`created ${resourceText(resourceKey(resource))}: ${shards} shards`, answer);
  });
}

interface AlterOptions extends Record<string, unknown> {
  readonly kind?: ResourceKind;
  readonly shards?: number;
  readonly replicationFactor?: number;
  readonly zonePolicy?: ZonePolicy | 'default';
  readonly label?: Record<string, string | null>;
  readonly expectedRevision?: number;
}

function addAlter(noun: Command, environment: CliEnvironment, { kind }: NounOptions): void {
  const alter = withKind(
    noun.command('alter <name>').description('change what is given, leave the rest'),
    kind,
  )
    .option('--shards <n>', 'more shards than before', parseCount)
    .option('--replication-factor <n>', 'copies of each shard', parseCount)
    .addOption(zonePolicyOption(['broker', 'zone', 'majority', 'default']))
    .option(
      '--label <key=value>',
      'set a label, or remove it with key-; may be given again',
      collectLabels(true),
    )
    .option('--expected-revision <n>', 'refuse unless it is still at this revision', parseCount);
  clusterCommand(alter, environment, async ({ client, done }, options: AlterOptions, [name = '']) => {
    const resource = resourceArgument(name, options.kind ?? kind);
    const { shards, replicationFactor, zonePolicy, label: labels, expectedRevision } = options;
    const answer = await client.write('resource.alter', {
      ...resource,
      shards,
      replicationFactor,
      zonePolicy: zonePolicy === 'default' ? null : zonePolicy,
      labels,
      expectedRevision,
    });
    done(`altered ${resourceText(resourceKey(resource))}`, answer);
  });
}

function zonePolicyOption(choices: readonly string[]): Option {
  return new Option('--zone-policy <policy>', "how its copies spread (the cluster's)").choices(choices);
}
