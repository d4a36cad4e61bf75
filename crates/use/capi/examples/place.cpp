/* Standard containers near cores: a map near the core of whoever fills it, a list near core 0.
 *
 *   c++ -std=c++17 place.cpp $(pkg-config --cflags --libs isochrone) -o place
 *   ./place [force]
 */
#include <isochrone.hpp>

#include <cstring>
#include <iostream>
#include <list>
#include <map>
#include <numeric>
#include <string>

int main(int count, char **words) {
  isochrone_place_options options = {};
  options.flags = count > 1 && std::strcmp(words[1], "force") == 0 ? ISOCHRONE_PLACE_FORCE : 0;
  isochrone::placement placement(options);
  if (auto why = placement.why_not()) std::cout << *why << '\n';

  isochrone::memory_resource near(placement), near_core_0(placement, 0);
  {
    std::pmr::map<int, std::pmr::string> names(&near);
    for (int i = 0; i < 5000; i++) names.emplace(i, "a name that is too long for the object itself " + std::to_string(i));
    std::pmr::list<long> numbers(&near_core_0);
    for (long i = 0; i < 5000; i++) numbers.push_back(i);
    for (int i = 0; i < 5000; i += 2) names.erase(i);
    if (names.size() != 2500 || names.at(77).back() != '7') return 1;
    if (std::accumulate(numbers.begin(), numbers.end(), 0L) != 4999L * 5000 / 2) return 1;
    if (near != near_core_0 || near == *std::pmr::new_delete_resource()) return 1;
    if (placement.distance(&*names.begin(), 0).has_value()) return 1; // inside of a node, where no object begins
  }
  isochrone_place_counts counts = placement.statistics();
  if (counts.placed_objects != counts.freed_objects) return 1;
  std::cout << "libisochrone " << isochrone_version() << ": " << counts.placed_objects
            << " objects placed, all as it should be\n";
  return 0;
}
