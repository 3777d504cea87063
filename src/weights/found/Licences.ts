// Which licences of models restrict what a model may be used for. Pure.

/**
 * Names, as hubs and SPDX have them, of licences that restrict no use: they may ask for a notice, for the source or for the same
 * licence when something is passed on.
 */
const unrestricted =
  /^(?:apache-2\.0|mit|isc|0bsd|bsd|bsd-[23]-clause(?:-clear)?|unlicense|wtfpl|zlib|ncsa|bsl-1\.0|afl-3\.0|artistic-2\.0|ms-pl|postgresql|mpl-2\.0|(?:a|l)?gpl(?:-(?:2\.0|2\.1|3\.0))?(?:-(?:only|or-later))?|ecl-2\.0|epl-[12]\.0|eupl-1\.[12]|cc0-1\.0|cc-by(?:-sa)?-(?:2\.0|2\.5|3\.0|4\.0)|odc-by|pddl|ofl-1\.1|cdla-permissive-[12]\.0)$/

/**
 * True for every licence that is not known to leave the use free, e.g. those that exclude commerce, limit the number of users or
 * forbid purposes. False if none is named.
 */
export const restrictsUse = (licence: string | undefined): boolean =>
  licence !== undefined && !unrestricted.test(licence.toLowerCase())
