// SPDX-License-Identifier: Apache-2.0
// Finds sections of the site by words; find.html shows them. A section is {page, heading, text, url}.
"use strict";

function words_of(query) {
    return query.toLowerCase().split(/\s+/).filter(word => word !== "");
}

function count(text, word) {
    let n = 0;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length))
        n++;
    return n;
}

// The sections that have all words, those first that have them in their heading, then the ones with most of them.
function find(sections, query) {
    const words = words_of(query), found = [];
    if (words.length === 0)
        return found;
    for (const section of sections) {
        const heading = (section.page + " " + section.heading).toLowerCase(), text = section.text.toLowerCase();
        let rank = 0;
        for (const word of words) {
            const n = 20 * count(heading, word) + Math.min(count(text, word), 10);
            rank = n === 0 || rank < 0 ? -1 : rank + n;
        }
        if (rank > 0)
            found.push({section, rank});
    }
    return found.sort((a, b) => b.rank - a.rank).map(entry => entry.section);
}

// About 200 characters around the first word that the text has, in parts of which some are words of the query.
function excerpt(text, query) {
    const words = words_of(query), low = text.toLowerCase(), parts = [];
    const places = words.map(word => low.indexOf(word)).filter(at => at >= 0);
    const begin = Math.max(0, Math.min(...places, text.length) - 60), end = Math.min(text.length, begin + 220);
    let at = begin;
    if (places.length === 0)
        return [{text: text.slice(0, 200), is_found: false}];
    while (at < end) {
        let next = end, length = 0;
        for (const word of words) {
            const place = low.indexOf(word, at);
            if (place >= 0 && (place < next || (place === next && word.length > length)))
                [next, length] = [place, word.length];
        }
        if (next > at)
            parts.push({text: text.slice(at, Math.min(next, end)), is_found: false});
        if (next < end)
            parts.push({text: text.slice(next, next + length), is_found: true});
        at = next + Math.max(length, next < end ? 1 : 0);
        if (next >= end)
            break;
    }
    return parts;
}

if (typeof module !== "undefined")
    module.exports = {find, excerpt};
