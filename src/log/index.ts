export { openDataDirectory, type DataDirectory } from './data-directory.ts';
